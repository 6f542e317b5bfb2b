//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

const storage = corev1.NodeConditionType("StorageReady")

// shutdown is what the kernel says when the filesystem of the node's root is gone:
// one that the node does not need is no reason to replace it.
func shutdown(t *testing.T) string {
	t.Helper()
	return "XFS (" + rootDevice(t) + "): Filesystem has been shut down due to log error (0x2)."
}

// rootDevice is the block device of the root filesystem, as the kernel names it.
func rootDevice(t *testing.T) string {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat("/", &st); err != nil {
		t.Fatal(err)
	}
	link, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev)))
	if err != nil {
		t.Skipf("the root of this machine lies on no block device, whose loss would be Fatal: %v", err)
	}
	return filepath.Base(link)
}

func TestAKernelOopsIsAnEventAndACount(t *testing.T) {
	w := newWatched(t)
	w.start()
	w.until("KernelReady", corev1.ConditionTrue)
	kmsg(t, "kernel: BUG: unable to handle kernel NULL pointer dereference at TESTING")
	w.eventually("the event", func() bool { return len(w.events("KernelOops")) == 1 })
	w.eventually("the count", func() bool { return w.metric(`problem_counter{reason="KernelOops"} 1`) })
	if out := w.kubectl("describe", "node", w.node); !strings.Contains(out[strings.LastIndex(out, "Events:"):], "KernelOops") {
		t.Errorf("kubectl describe node does not show it:\n%s", out)
	}
	if c := w.condition("KernelReady"); c.Status != corev1.ConditionTrue {
		t.Errorf("a Warning turned its condition: %+v", c)
	}
}

func TestAFatalTurnsItsConditionOnceAndHealsByItsRule(t *testing.T) {
	w := newWatched(t)
	w.start()
	w.until(storage, corev1.ConditionTrue)
	kmsg(t, shutdown(t))
	first := w.until(storage, corev1.ConditionFalse)
	for range 3 {
		// Heartbeats have whole seconds: one of the second before cannot be told apart.
		last := w.condition(storage).LastHeartbeatTime
		time.Sleep(time.Until(last.Add(time.Second)))
		w.stop(syscall.SIGKILL)
		w.start()
		w.eventually("the agent is ready again", func() bool {
			resp, err := http.Get("http://" + w.address + "/readyz")
			return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
		})
		w.eventually("it beats again", func() bool { return w.condition(storage).LastHeartbeatTime.After(last.Time) })
		if c := w.condition(storage); c.Status != corev1.ConditionFalse || !c.LastTransitionTime.Equal(&first.LastTransitionTime) {
			t.Fatalf("a restart changed %+v to %+v", first, c)
		}
	}
	if got := w.events("FilesystemShutdown"); len(got) != 1 {
		t.Errorf("told %d times: %q", len(got), got)
	}
	// Only a reboot or a person ends it.
	w.kubectl("annotate", "node", w.node, "ekslogs.io/all-clear=FilesystemShutdown/"+rootDevice(t))
	healed := w.until(storage, corev1.ConditionTrue)
	if !healed.LastTransitionTime.After(first.LastTransitionTime.Time) {
		t.Errorf("the status moved and its time did not: %+v, %+v", first, healed)
	}
	w.eventually("the order is removed", func() bool { return w.object().Annotations["ekslogs.io/all-clear"] == "" })
	w.eventually("the recovery is told", func() bool {
		return slices.ContainsFunc(w.events("FilesystemShutdown"), func(s string) bool { return strings.HasPrefix(s, "Recovered ") })
	})
}

func TestALostLedgerIsTakenFromTheNode(t *testing.T) {
	w := newWatched(t)
	w.start()
	w.until(storage, corev1.ConditionTrue)
	kmsg(t, shutdown(t))
	first := w.until(storage, corev1.ConditionFalse)
	w.stop(syscall.SIGKILL)
	w.state = t.TempDir()
	w.fromSeq = nextKmsgSeq(t)
	w.start()
	w.until("KernelReady", corev1.ConditionTrue)
	w.eventually("it beats again", func() bool { return w.condition(storage).LastHeartbeatTime.After(first.LastHeartbeatTime.Time) })
	if c := w.condition(storage); c.Status != corev1.ConditionFalse || c.Reason != first.Reason || !c.LastTransitionTime.Equal(&first.LastTransitionTime) {
		t.Errorf("%+v became %+v", first, c)
	}
}

func TestADamagedOrReadOnlyStateDirectoryIsSurvived(t *testing.T) {
	w := newWatched(t)
	for _, name := range []string{"ledger.json", "checkpoints.json"} {
		if err := os.WriteFile(filepath.Join(w.state, name), []byte("{damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.until(storage, corev1.ConditionTrue)
	w.stop(syscall.SIGTERM)
	w.state = "/proc/none" // nothing can be made there
	w.start()
	kmsg(t, shutdown(t))
	w.until(storage, corev1.ConditionFalse)
}

func TestDroppedConditionsAndARecreatedNodeGetTheirOldTimes(t *testing.T) {
	w := newWatched(t)
	w.start()
	w.until(storage, corev1.ConditionTrue)
	kmsg(t, shutdown(t))
	first := w.until(storage, corev1.ConditionFalse)
	w.kubectl("patch", "node", w.node, "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[]}}`)
	if c := w.until(storage, corev1.ConditionFalse); !c.LastTransitionTime.Equal(&first.LastTransitionTime) {
		t.Errorf("%+v came back as %+v", first, c)
	}
	w.kubectl("delete", "node", w.node)
	w.createNode()
	if c := w.until(storage, corev1.ConditionFalse); !c.LastTransitionTime.Equal(&first.LastTransitionTime) {
		t.Errorf("%+v came back as %+v", first, c)
	}
}

func TestAnotherAgentIsNotFought(t *testing.T) {
	w := newWatched(t)
	theirs := func(n int) {
		w.kubectl("patch", "node", w.node, "--subresource=status", "--type=strategic", "--field-manager=eks-node-monitoring-agent", "-p",
			fmt.Sprintf(`{"status":{"conditions":[{"type":"KernelReady","status":"True","reason":"KernelIsReady","message":"theirs","lastHeartbeatTime":%q}]}}`,
				time.Now().Add(time.Duration(n)*time.Second).UTC().Format(time.RFC3339)))
	}
	theirs(0)
	w.start()
	w.eventually("AnotherAgentActive", func() bool { return len(w.events("AnotherAgentActive")) == 1 })
	kmsg(t, shutdown(t))
	w.eventually("the metric", func() bool { return w.metric("node_agent_standby 1") })
	theirs(1)
	if c := w.condition("KernelReady"); c.Message != "theirs" || w.condition(storage) != nil {
		t.Errorf("it wrote beside the other: %+v", c)
	}
	w.stop(syscall.SIGTERM)
	w.flags = append(w.flags, "--takeover")
	w.start()
	w.until(storage, corev1.ConditionFalse)
	w.eventually("ours", func() bool { return w.condition("KernelReady").Message != "theirs" })
}

func TestAConfigIsObeyedWhenItChanges(t *testing.T) {
	w := newWatched(t)
	w.start()
	w.until(storage, corev1.ConditionTrue)
	text := "apiVersion: ekslogs.io/v1alpha1\nkind: NodeAgentConfig\nmonitors:\n  kernel: {enabled: false}\nreasons:\n  FilesystemShutdown: {mode: shadow}\n"
	if err := os.WriteFile(w.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.eventually("the condition of the monitor that is off is gone", func() bool { return w.condition("KernelReady") == nil })
	kmsg(t, shutdown(t))
	w.eventually("the shadow", func() bool { return len(w.events("WouldBeFilesystemShutdown")) == 1 })
	if c := w.condition(storage); c.Status != corev1.ConditionTrue {
		t.Errorf("shadow mode turned a condition: %+v", c)
	}
}

func TestEachFaultIsToldOnceOverFiftyCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute or two")
	}
	w := newWatched(t)
	w.start()
	w.until(storage, corev1.ConditionTrue)
	r := rand.New(rand.NewPCG(1, 2))
	const faults = 50
	for i := range faults {
		kmsg(t, fmt.Sprintf("I/O error, dev crash%dn1, sector 1 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2", i))
		time.Sleep(time.Duration(r.IntN(600)) * time.Millisecond)
		w.stop(syscall.SIGKILL)
		w.start()
	}
	told := func() map[string]int {
		devices := map[string]int{}
		for _, line := range w.events("BlockDeviceIOError") {
			for i := range faults {
				if strings.Contains(line, fmt.Sprintf("crash%dn1", i)) {
					devices[fmt.Sprint(i)]++
				}
			}
		}
		return devices
	}
	for deadline := time.Now().Add(3 * time.Minute); len(told()) < faults && time.Now().Before(deadline); time.Sleep(time.Second) {
	}
	got := told()
	for i := range faults {
		if n := got[fmt.Sprint(i)]; n != 1 {
			t.Errorf("fault %d is told %d times", i, n)
		}
	}
}
