//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ekslogs/ekslogs/test/cluster/onenode"
)

// watched is a Node object of its own, with an agent that writes its health. The
// cluster's own node is left to the tests of captures.
type watched struct {
	*env
	node    string
	state   string
	config  string
	address string
	fromSeq uint64
	flags   []string

	cmd *exec.Cmd
	log bytes.Buffer
}

// newWatched creates the Node. The agent, once started, reads the kernel's log from
// here on only: the ring holds what earlier tests wrote.
func newWatched(t *testing.T, flags ...string) *watched {
	t.Helper()
	c, err := onenode.New("")
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{env: &env{c, t}, node: fmt.Sprintf("health-%x", rand.Uint32()), state: t.TempDir(), fromSeq: nextKmsgSeq(t), flags: flags}
	w.config = filepath.Join(t.TempDir(), "config.yaml")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = l.Addr().String()
	l.Close()
	w.createNode()
	t.Cleanup(func() {
		if t.Failed() {
			w.explain()
		}
		w.stop(syscall.SIGTERM)
		w.kubectl("delete", "node", w.node, "--ignore-not-found")
		w.kubectl("delete", "events", "-n", "default", "--field-selector", "involvedObject.name="+w.node)
		if t.Failed() {
			t.Logf("node-agent said:\n%s", w.log.Bytes())
		}
	})
	return w
}

func (w *watched) createNode() {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "node.json")
	// Without a label the API server would track no managers of its fields.
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","metadata":{"name":%q,"labels":{"kubernetes.io/os":"linux"}}}`, w.node)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.kubectl("create", "-f", file)
}

func (w *watched) start() {
	w.t.Helper()
	w.cmd = exec.Command(program(w.Cluster, "node-agent"), append([]string{
		"run", "--node-name", w.node, "--kubeconfig", w.Kubeconfig(), "--state-dir", w.state, "--config", w.config,
		"--verbose", "--metrics-address", w.address, "--trust-userspace-kmsg", "--kmsg-from-seq", fmt.Sprint(w.fromSeq),
	}, w.flags...)...)
	w.cmd.Stdout, w.cmd.Stderr = &w.log, &w.log
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) stop(sig os.Signal) {
	if w.cmd == nil {
		return
	}
	_ = w.cmd.Process.Signal(sig)
	_ = w.cmd.Wait()
	w.cmd = nil
}

// explain logs what the agent knows.
func (w *watched) explain() {
	for _, name := range []string{"ledger.json", "checkpoints.json"} {
		b, err := os.ReadFile(filepath.Join(w.state, name))
		w.t.Logf("%s: %s %v", name, b, err)
	}
	if resp, err := http.Get("http://" + w.address + "/metrics"); err == nil {
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		w.t.Logf("metrics:\n%s", b)
	}
	w.t.Logf("the Node: %+v", w.object().Status.Conditions)
}

func (w *watched) object() corev1.Node {
	w.t.Helper()
	var n corev1.Node
	if err := json.Unmarshal([]byte(w.kubectl("get", "--raw", "/api/v1/nodes/"+w.node)), &n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *watched) condition(t corev1.NodeConditionType) *corev1.NodeCondition {
	n := w.object()
	i := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &n.Status.Conditions[i]
}

// until waits for the condition to have the status.
func (w *watched) until(t corev1.NodeConditionType, status corev1.ConditionStatus) *corev1.NodeCondition {
	w.t.Helper()
	var c *corev1.NodeCondition
	w.eventually(fmt.Sprintf("%s=%s", t, status), func() bool {
		c = w.condition(t)
		return c != nil && c.Status == status
	})
	return c
}

func (w *watched) eventually(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("never: %s", what)
		}
	}
}

// events are the notes of the Node's Events with that reason.
func (w *watched) events(reason string) []string {
	w.t.Helper()
	out := w.kubectl("get", "events", "-n", "default", "--field-selector", "involvedObject.name="+w.node+",reason="+reason,
		"-o", `jsonpath={range .items[*]}{.action} {.message}{"\n"}{end}`)
	return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' })
}

func (w *watched) metric(line string) bool {
	resp, err := http.Get("http://" + w.address + "/metrics")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return bytes.Contains(b, []byte(line+"\n"))
}

// kmsg writes a record to the kernel's log. The kernel lets one open file write some
// ten records each five seconds, so it is opened anew; and it drops a write now and
// then without a word, so it is looked for.
func kmsg(t *testing.T, text string) {
	t.Helper()
	from := nextKmsgSeq(t)
	for range 10 {
		f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("<2>" + text)
		if err = errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		there := false
		readKmsg(t, func(seq uint64, record string) { there = there || (seq >= from && strings.Contains(record, text)) })
		if there {
			return
		}
	}
	t.Fatal("the kernel drops what is written to /dev/kmsg")
}

// nextKmsgSeq is the sequence number that the next record of the kernel's log gets.
func nextKmsgSeq(t *testing.T) uint64 {
	t.Helper()
	var next uint64
	readKmsg(t, func(seq uint64, _ string) { next = seq + 1 })
	return next
}

// readKmsg reads what the kernel's log holds.
func readKmsg(t *testing.T, take func(seq uint64, record string)) {
	t.Helper()
	fd, err := syscall.Open("/dev/kmsg", syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	buf := make([]byte, 16<<10)
	for {
		n, err := syscall.Read(fd, buf)
		switch err {
		case nil:
			var prio, seq uint64
			if _, err := fmt.Sscanf(string(buf[:n]), "%d,%d,", &prio, &seq); err != nil {
				t.Fatal(err)
			}
			take(seq, string(buf[:n]))
		case syscall.EAGAIN:
			return
		case syscall.EPIPE, syscall.EINTR:
		default:
			t.Fatal(err)
		}
	}
}

const (
	storage  = corev1.NodeConditionType("StorageReady")
	shutdown = "XFS (nvme7n1): Filesystem has been shut down due to log error (0x2)."
)

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
	kmsg(t, shutdown)
	first := w.until(storage, corev1.ConditionFalse)
	for range 3 {
		w.stop(syscall.SIGKILL)
		w.start()
		w.eventually("the agent is ready again", func() bool {
			resp, err := http.Get("http://" + w.address + "/readyz")
			return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
		})
		w.eventually("it beats again", func() bool { return w.condition(storage).LastHeartbeatTime.After(first.LastHeartbeatTime.Time) })
		if c := w.condition(storage); c.Status != corev1.ConditionFalse || !c.LastTransitionTime.Equal(&first.LastTransitionTime) {
			t.Fatalf("a restart changed %+v to %+v", first, c)
		}
	}
	if got := w.events("FilesystemShutdown"); len(got) != 1 {
		t.Errorf("told %d times: %q", len(got), got)
	}
	// Only a reboot or a person ends it.
	w.kubectl("annotate", "node", w.node, "ekslogs.io/all-clear=FilesystemShutdown/nvme7n1")
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
	kmsg(t, shutdown)
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
	kmsg(t, shutdown)
	w.until(storage, corev1.ConditionFalse)
}

func TestDroppedConditionsAndARecreatedNodeGetTheirOldTimes(t *testing.T) {
	w := newWatched(t)
	w.start()
	w.until(storage, corev1.ConditionTrue)
	kmsg(t, shutdown)
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
	kmsg(t, shutdown)
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
	kmsg(t, shutdown)
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
