package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// Sizes of the files: below the bound of the items that they become.
const (
	largeFile = 120 << 20
	smallFile = 48 << 20
)

// makeLogs makes the /var/log of a node below root, always the same for one size.
// It returns the files' names below root and their size in all.
func makeLogs(root string, size int64) (names []string, total int64, err error) {
	dir := filepath.Join(root, "var/log/aws-routed-eni")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, 0, err
	}
	for total < size {
		name, want := fmt.Sprintf("var/log/aws-routed-eni/ipamd-2026-01-02T03-%02d.log", len(names)), int64(smallFile)
		switch len(names) {
		case 0:
			name, want = "var/log/messages", largeFile
		case 1:
			name, want = "var/log/syslog", largeFile
		case 2:
			name, want = "var/log/kube-proxy.log", largeFile
		}
		n, err := makeLog(filepath.Join(root, name), min(want, size-total), uint64(len(names)))
		if err != nil {
			return nil, 0, err
		}
		names, total = append(names, name), total+n
	}
	return names, total, nil
}

// makeLog writes a log of about size bytes.
func makeLog(path string, size int64, seed uint64) (int64, error) {
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	r := rand.New(rand.NewPCG(seed, 20260102))
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	var n int64
	for n < size && err == nil {
		at = at.Add(time.Duration(r.IntN(40)) * time.Millisecond)
		var k int
		k, err = writeLine(w, at, r)
		n += int64(k)
	}
	return n, errors.Join(err, w.Flush(), f.Close())
}

// writeLine writes a line as the programs of a node do: one in 1,000 holds a secret.
func writeLine(w io.Writer, at time.Time, r *rand.Rand) (int, error) {
	ip := func() string { return fmt.Sprintf("10.%d.%d.%d", r.IntN(4), r.IntN(256), r.IntN(256)) }
	stamp := at.Format("Jan _2 15:04:05")
	switch n := r.IntN(1000); {
	case n == 0:
		return fmt.Fprintf(w, "%s ip-10-0-3-7 app[%d]: GET /v1/items Authorization: Bearer %016x%016x\n", stamp, r.IntN(30000), r.Uint64(), r.Uint64())
	case n < 300:
		return fmt.Fprintf(w, "%s ip-10-0-3-7 kubelet[2711]: I%s    2711 reconciler_common.go:245] \"operationExecutor.VerifyControllerAttachedVolume started for volume \\\"kube-api-access-%05x\\\" (UniqueName: \\\"kubernetes.io/projected/%08x-kube-api-access\\\") pod \\\"web-%05x\\\" (UID: \\\"%016x\\\") \" pod=\"default/web-%05x\"\n",
			stamp, at.Format("0102 15:04:05.000000"), r.IntN(1<<20), r.Uint32(), r.IntN(1<<20), r.Uint64(), r.IntN(1<<20))
	case n < 550:
		return fmt.Fprintf(w, "{\"level\":\"debug\",\"ts\":\"%s\",\"caller\":\"ipamd/ipamd.go:%d\",\"msg\":\"IP stats - total IPs: %d, assigned IPs: %d, cooldown IPs: %d for ENI eni-%017x\"}\n",
			at.Format("2006-01-02T15:04:05.000Z"), 600+r.IntN(900), r.IntN(60), r.IntN(60), r.IntN(9), r.Uint64())
	case n < 750:
		return fmt.Fprintf(w, "%s ip-10-0-3-7 containerd[2230]: time=\"%s\" level=info msg=\"StartContainer for \\\"%016x%016x\\\" returns successfully\"\n",
			stamp, at.Format("2006-01-02T15:04:05.000000000Z"), r.Uint64(), r.Uint64())
	case n < 900:
		return fmt.Fprintf(w, "%s ip-10-0-3-7 nginx[%d]: %s - - [%s] \"GET /api/v2/orders/%d?page=%d HTTP/1.1\" 200 %d \"-\" \"okhttp/4.12.0\" %d.%03d\n",
			stamp, r.IntN(30000), ip(), at.Format("02/Jan/2006:15:04:05 -0700"), r.IntN(1e6), r.IntN(40), r.IntN(90000), r.IntN(2), r.IntN(1000))
	default:
		return fmt.Fprintf(w, "%s ip-10-0-3-7 kernel: [%d.%06d] IPVS: rr: TCP %s:%d - no destination available\n",
			stamp, r.IntN(1e6), r.IntN(1e6), ip(), r.IntN(65536))
	}
}
