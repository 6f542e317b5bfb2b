package detect

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host/journal"
)

// BenchmarkJournalJSON measures the whole path, from the bytes that journalctl writes
// to findings: 200,000 entries of a node, of which one in 10,000 is a fault.
func BenchmarkJournalJSON(b *testing.B) {
	const n = 200_000
	lines, size := journalCorpus(n)
	p, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	var parser journal.Parser
	b.SetBytes(size)
	before := cpuTime(b)
	for b.Loop() {
		found := 0
		for _, line := range lines {
			r, err := parser.Parse(line)
			if err != nil {
				b.Fatal(err)
			}
			found += len(p.Detect(r))
		}
		if found < n/10_000 {
			b.Fatalf("%d findings, want at least %d", found, n/10_000)
		}
	}
	cpu := cpuTime(b) - before
	b.ReportMetric(float64(size)*float64(b.N)/1e6/cpu.Seconds(), "MB/cpu-s")
}

// journalCorpus returns n reproducible lines of journalctl -o json, and their length.
func journalCorpus(n int) ([][]byte, int64) {
	rnd := rand.New(rand.NewPCG(1, 2))
	const hex = "0123456789abcdef"
	id := func(n int) string {
		var s strings.Builder
		for range n {
			s.WriteByte(hex[rnd.IntN(16)])
		}
		return s.String()
	}
	lines := make([][]byte, n)
	var size int64
	for i := range lines {
		unit, transport, facility, identifier := "kubelet.service", "stdout", "3", "kubelet"
		message := fmt.Sprintf(`I1201 00:00:00.000000    1234 reconciler_common.go:245] \"operationExecutor.VerifyControllerAttachedVolume started for volume \\\"kube-api-access-%s\\\" (UniqueName: \\\"kubernetes.io/projected/%s\\\") pod \\\"app-%s\\\" \" pod=\"default/app-%s\"`, id(5), id(36), id(5), id(5))
		switch k := rnd.IntN(10); {
		case i%10_000 == 9_999:
			unit, transport, facility, identifier = "", "kernel", "0", "kernel"
			message = fmt.Sprintf("nf_conntrack: nf_conntrack: table full, dropping packet %d", i)
		case k < 3:
			unit, identifier = "containerd.service", "containerd"
			message = fmt.Sprintf(`time=\"2026-12-01T00:00:00Z\" level=info msg=\"StartContainer for \\\"%s\\\" returns successfully\"`, id(64))
		case k < 4:
			unit, transport, facility, identifier = "", "kernel", "0", "kernel"
			message = "eth0: renamed from veth" + id(8)
		}
		lines[i] = fmt.Appendf(nil, `{"__CURSOR":"s=%s;i=%x;b=%s;m=%x;t=%x;x=%s","__REALTIME_TIMESTAMP":"%d","__MONOTONIC_TIMESTAMP":"%d","_BOOT_ID":"%s","_TRANSPORT":"%s","PRIORITY":"6","SYSLOG_FACILITY":"%s","SYSLOG_IDENTIFIER":"%s","_PID":"1234","_SYSTEMD_UNIT":"%s","MESSAGE":"%s"}`,
			id(32), i, id(32), i, i, id(16), 1764547200000000+i*1000, 5000000+i*1000, "0123456789abcdef0123456789abcdef", transport, facility, identifier, unit, message)
		size += int64(len(lines[i]))
	}
	return lines, size
}

// cpuTime is the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
