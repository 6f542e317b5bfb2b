package ledger

import (
	"fmt"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// hits feeds an Xid that a process of the pod had.
func (b *bench) hits(pod, uid string, origin health.Origin) {
	b.seq++
	b.Observe(health.Finding{
		Reason: "NvidiaXID31Warning", Severity: health.Warning, Condition: health.AcceleratedHardwareReady, Subject: "GPU-1",
		Message: "a program faulted", At: b.at, Boot: b.boot, Origin: origin, Position: fmt.Sprintf("kmsg/%s/%d", b.boot, b.seq),
		Fields: map[string]any{"pod": pod, "pod_uid": uid},
	})
}

// onPods are the notices about pods, as "namespace/name count".
func (b *bench) onPods() (out []string) {
	for _, n := range b.Pending() {
		if n.OnPod {
			out = append(out, fmt.Sprint(n.Pod, " ", n.Count))
		}
	}
	return out
}

func TestEachPodOfAFaultIsToldOnce(t *testing.T) {
	b := newBench(t)
	b.hits("ml/train-0", "u0", health.OriginKernel)
	b.hits("ml/train-0", "u0", health.OriginKernel)
	b.hits("ml/train-1", "u1", health.OriginKernel)
	if got := fmt.Sprint(b.onPods()); got != "[ml/train-0 1 ml/train-1 1]" {
		t.Errorf("told %s", got)
	}
	if n := b.Pending()[0]; n.OnPod || n.Text() != "GPU-1: a program faulted (pod ml/train-0)" {
		t.Errorf("the Node is told %q", n.Text())
	}
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, n := range b.Pending() {
		b.Delivered(n)
	}
	if err := b.Flush(); err != nil {
		t.Fatal(err)
	}
	b.restart()
	b.hits("ml/train-1", "u1", health.OriginKernel)
	if got := b.onPods(); got != nil {
		t.Errorf("told again after a restart: %v", got)
	}
}

func TestPodsAreNotToldOfWhatNamesThemBadly(t *testing.T) {
	for name, hit := range map[string]func(*bench){
		"written by user space": func(b *bench) { b.hits("ml/train-0", "u0", health.OriginUserspace) },
		"no name":               func(b *bench) { b.hits("u0", "u0", health.OriginKernel) },
		"no UID":                func(b *bench) { b.hits("ml/train-0", "", health.OriginKernel) },
		"a path for a name":     func(b *bench) { b.hits("ml/../x", "u0", health.OriginKernel) },
		"an escape in it":       func(b *bench) { b.hits("ml/\x1b[1m", "u0", health.OriginKernel) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			hit(b)
			if got := b.onPods(); got != nil {
				t.Errorf("told %v", got)
			}
			if len(b.Pending()) != 1 {
				t.Errorf("the Node is told %v", b.Pending())
			}
		})
	}
}

func TestAFaultOfManyPodsTellsABoundedNumber(t *testing.T) {
	b := newBench(t)
	for i := range 3 * maxPods {
		b.hits(fmt.Sprint("ml/train-", i), fmt.Sprint("u", i), health.OriginKernel)
	}
	if got := len(b.onPods()); got != maxPods {
		t.Errorf("told %d pods, want %d", got, maxPods)
	}
}
