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
// ten records each five seconds, so it is opened anew; without its newline a record
// is shown only when the next one comes; and what is dropped is dropped without a
// word, so it is looked for.
func kmsg(t *testing.T, text string) {
	t.Helper()
	from := nextKmsgSeq(t)
	for range 10 {
		f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteString("<2>" + text + "\n")
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
