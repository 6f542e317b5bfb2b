package detect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/rule"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// The pipeline and what is in it are detectors.
var (
	_ Detector = (*Pipeline)(nil)
	_ Detector = (*gate)(nil)
	_ Detector = (*rule.Engine)(nil)
)

func newPipeline(t *testing.T, o Options) *Pipeline {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// at is a time of the tests, in seconds.
func at(seconds float64) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func kernelRecord(seconds float64, message string) host.Record {
	return host.Record{Source: host.SourceKmsg, Kernel: true, Message: message, At: at(seconds), Boot: "b", Position: "kmsg/b/1"}
}

func userRecord(seconds float64, message string) host.Record {
	r := kernelRecord(seconds, message)
	r.Kernel, r.Facility = false, 1
	return r
}

func TestFindingsCarryTheirRecord(t *testing.T) {
	p := newPipeline(t, Options{})
	got := p.Detect(kernelRecord(1, "VFS: file-max limit 7 reached"))
	if len(got) != 1 {
		t.Fatalf("got %+v", got)
	}
	f := got[0]
	if !f.At.Equal(at(1)) || f.Boot != "b" || f.Position != "kmsg/b/1" || f.Origin != health.OriginKernel || f.Evidence != "VFS: file-max limit 7 reached" {
		t.Errorf("got %+v", f)
	}
}

func TestUserspaceIsAtMostAWarningAndClearsNothing(t *testing.T) {
	p := newPipeline(t, Options{})
	for _, f := range append(p.Detect(userRecord(1, "EXT4-fs (nvme0n1p1): Remounting filesystem read-only")), p.Detect(userRecord(2, "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"))...) {
		if f.Severity == health.Fatal || f.Clears || f.Origin != health.OriginUserspace {
			t.Errorf("got %+v", f)
		}
	}
}

func TestUserspaceCannotHideWhatTheKernelSays(t *testing.T) {
	p := newPipeline(t, Options{})
	p.Detect(userRecord(1, "sysrq: Trigger a crash"))
	p.Detect(kernelRecord(2, "nfs: server a not responding, still trying"))
	p.Detect(userRecord(3, "nfs: server a OK"))
	got := p.Detect(kernelRecord(3, "BUG: kernel NULL pointer dereference, address: 0000000000000010"))
	if len(got) != 1 || got[0].Reason != "KernelOops" || got[0].Severity != health.Warning {
		t.Errorf("the oops: got %+v", got)
	}
	if got := p.Flush(at(100)); len(got) != 1 || got[0].Reason != "NFSServerNotResponding" || got[0].Severity != health.Warning {
		t.Errorf("the NFS server: got %+v", got)
	}
}

func TestTrustedUserspaceIsTheKernel(t *testing.T) {
	p := newPipeline(t, Options{TrustUserspace: true})
	got := p.Detect(userRecord(1, "kernel: EXT4-fs (nvme0n1p1): Remounting filesystem read-only"))
	if len(got) != 1 || got[0].Severity != health.Fatal {
		t.Errorf("got %+v", got)
	}
}

func TestWhatIsHeldBackIsDueByTheClockOfTheRecords(t *testing.T) {
	p := newPipeline(t, Options{})
	if got := p.Detect(kernelRecord(1, "nfs: server a not responding, still trying")); len(got) != 0 {
		t.Fatalf("told at once: %+v", got)
	}
	due := p.Due()
	if !due.After(at(1)) {
		t.Fatalf("due at %v", due)
	}
	if got := p.Flush(due.Add(-time.Second)); len(got) != 0 {
		t.Errorf("told before it was due: %+v", got)
	}
	if got := p.Detect(kernelRecord(1000, "eth0: link up")); len(got) != 1 || !got[0].At.Equal(at(1)) {
		t.Errorf("a later record does not release it: %+v", got)
	}
	if due := p.Due(); !due.IsZero() {
		t.Errorf("still due at %v", due)
	}
}

func TestAClockThatIsSetBackReleasesWhatWaits(t *testing.T) {
	p := newPipeline(t, Options{})
	p.Detect(kernelRecord(4000, "nfs: server a not responding, still trying"))
	if got := p.Detect(kernelRecord(400, "eth0: link up")); len(got) != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestEndOfLogReturnsEverything(t *testing.T) {
	p := newPipeline(t, Options{})
	p.Detect(kernelRecord(1, "nfs: server a not responding, still trying"))
	p.Detect(kernelRecord(1, "unregister_netdevice: waiting for lo to become free. Usage count = 5"))
	got := p.Flush(time.Time{})
	if len(got) != 2 {
		t.Errorf("got %+v", got)
	}
	for _, f := range got {
		if f.Origin != health.OriginKernel || f.Evidence == "" || f.At.IsZero() {
			t.Errorf("not whole: %+v", f)
		}
	}
}

func TestEvidenceIsBoundedAndPrintable(t *testing.T) {
	p := newPipeline(t, Options{})
	got := p.Detect(kernelRecord(1, "VFS: file-max limit 7 reached\x1b[31m\x00\xff"+strings.Repeat("a", 1<<20)))
	if len(got) != 1 {
		t.Fatalf("got %d findings", len(got))
	}
	if len(got[0].Evidence) > 2*maxEvidence || strings.ContainsAny(got[0].Evidence, "\x1b\x00") {
		t.Errorf("got %d findings, evidence of %d bytes", len(got), len(got[0].Evidence))
	}
}

func TestEveryReasonFoundInLogsIsInTheCatalogue(t *testing.T) {
	// Rules are checked when they are loaded; what is written in code is checked here,
	// over all texts, by the test of replay. The catalogue must at least know these.
	c := health.NewCatalog()
	for _, code := range []string{"ContainerOOM", "UnitCrashed", "ContainerNameReserved", "ContainerStartError", "NICPowerInsufficient"} {
		if _, ok := c.Lookup(code); !ok {
			t.Errorf("%s is not in the catalogue", code)
		}
	}
}

func TestWhatWaitsIsBoundedWithoutAnyTimes(t *testing.T) {
	p := newPipeline(t, Options{})
	told := 0
	for i := range 3000 {
		r := host.Record{Source: host.SourceKmsg, Kernel: true, Message: fmt.Sprintf("nfs: server s%d not responding, still trying", i)}
		told += len(p.Detect(r))
	}
	rest := len(p.Flush(time.Time{}))
	if told+rest != 3000 {
		t.Errorf("%d findings of 3000", told+rest)
	}
	if rest > 200 {
		t.Errorf("%d findings waited at the same time", rest)
	}
}

// FuzzPipeline feeds any text as any kind of record: nothing panics, and no record of
// user space is Fatal.
func FuzzPipeline(f *testing.F) {
	f.Add("oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),oom_memcg=/a,task_memcg=/b,task=x,pid=1,uid=0\nKilled process 1 (x) total-vm:1kB")
	f.Add("{1}[Hardware Error]: event severity: fatal\n{1}[Hardware Error]: section_type: memory error")
	f.Add("EDAC MC1: 1 UE x on y (page:0x1)\nMemory failure: 0x1: already hardware poisoned")
	f.Add("nvme nvme0: I/O 1 QID 2 timeout, reset controller\nnvme nvme0: 2/0/0 default/read/poll queues")
	f.Add("kubelet.service: Failed with result 'x'.\nStopping x...\na.service: Scheduled restart job, restart counter is at 9.")
	p, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, line := range strings.Split(s, "\n") {
			p.Detect(kernelRecord(1, line))
			p.Detect(host.Record{Source: host.SourceJournal, Unit: "*", FromManager: true, Message: line})
			p.Detect(host.Record{Source: host.SourceFile, Message: line})
			for _, finding := range p.Detect(userRecord(1, line)) {
				if finding.Origin == health.OriginUserspace && finding.Severity == health.Fatal {
					t.Errorf("%q: %+v", line, finding)
				}
			}
		}
		p.Flush(time.Time{})
	})
}
