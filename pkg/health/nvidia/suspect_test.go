package nvidia

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

var _ check.Check = (*Suspects)(nil)

// suspects is a Suspects for which process N runs in pod N/10.
func suspects(now *time.Time) *Suspects {
	return &Suspects{
		PodOf: func(pid int64) (Pod, bool) {
			return Pod{Namespace: "default", Name: fmt.Sprint("job-", pid/10), UID: fmt.Sprint(pid / 10)}, pid < 1000
		},
		Now: func() time.Time { return *now }, Catalog: health.NewCatalog(),
	}
}

func TestThreePodsMakeAGPUSuspect(t *testing.T) {
	xid := func(code int, pci string, pid int) string {
		return fmt.Sprintf("NVRM: Xid (PCI:%s): %d, pid=%d, name=a, Ch 1", pci, code, pid)
	}
	now := boot
	for _, tt := range []struct {
		name    string
		lines   []string
		minutes float64 // between lines
		want    []string
	}{
		{"three pods", []string{xid(13, "0000:01:00", 10), xid(31, "0000:01:00", 20), xid(94, "0000:01:00", 30)}, 10, []string{"0000:01:00 NvidiaSuspectHardware Warning"}},
		{"three processes of one pod", []string{xid(13, "0000:01:00", 10), xid(31, "0000:01:00", 11), xid(43, "0000:01:00", 12)}, 10, nil},
		{"three GPUs", []string{xid(13, "0000:01:00", 10), xid(13, "0000:02:00", 20), xid(13, "0000:03:00", 30)}, 10, nil},
		{"in more than an hour", []string{xid(13, "0000:01:00", 10), xid(31, "0000:01:00", 20), xid(94, "0000:01:00", 30)}, 40, nil},
		{"not in pods", []string{xid(13, "0000:01:00", 1000), xid(31, "0000:01:00", 2000), xid(94, "0000:01:00", 3000)}, 10, nil},
		{"not a program's fault", []string{xid(119, "0000:01:00", 10), xid(119, "0000:01:00", 20), xid(119, "0000:01:00", 30)}, 10, nil},
		{"consequences", []string{
			xid(45, "0000:01:00", 10) + " caused by previous Xid 149", xid(45, "0000:01:00", 20) + " caused by previous Xid 149", xid(45, "0000:01:00", 30) + " caused by previous Xid 149"}, 10, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := suspects(&now)
			d := NewDetector(Options{Suspects: s})
			for i, line := range tt.lines {
				r := kernelRecord(line, float64(i)*tt.minutes*60)
				d.Detect(r)
				now = r.At
			}
			got, err := s.Run(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			wantTold(t, got, tt.want...)
			now = now.Add(2 * time.Hour)
			if got, _ := s.Run(t.Context(), nil); len(got) > 0 {
				t.Errorf("two hours later still %v", told(got))
			}
		})
	}
}

func TestFindingsNameThePod(t *testing.T) {
	now := boot
	got := detectAll(Options{Suspects: suspects(&now)}, kernelRecord("NVRM: Xid (PCI:0000:01:00): 31, pid=42, name=a, Ch 1", 1))
	checkFields(t, map[string]any{"pod": "default/job-4", "pod_uid": "4"}, got[0].Fields)
}

func TestPodOfAProcess(t *testing.T) {
	const uid = "1b2c3d4e-0000-4111-8222-333344445555"
	root := t.TempDir()
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("var/log/pods/ml_train-0_"+uid+"/c/0.log", "")
	write("proc/1/cgroup", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c3d4e_0000_4111_8222_333344445555.slice/cri-containerd-ab.scope\n")
	write("proc/2/cgroup", "12:cpu:/kubepods/burstable/pod"+uid+"/ab\n")
	write("proc/3/cgroup", "0::/system.slice/kubelet.service\n")
	write("proc/4/cgroup", "0::/kubepods/pod0123456789abcdef0123456789abcdef/ab\n")
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	podOf := PodOf(h)
	for pid, want := range map[int64]string{1: "ml/train-0", 2: "ml/train-0", 4: "0123456789abcdef0123456789abcdef"} {
		if pod, ok := podOf(pid); !ok || pod.String() != want {
			t.Errorf("pid %d is of %q, %v; want %q", pid, pod, ok, want)
		}
	}
	for _, pid := range []int64{3, 99} {
		if pod, ok := podOf(pid); ok {
			t.Errorf("pid %d is of %q", pid, pod)
		}
	}
}
