//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// line is a connection to the API server that can be cut and joined again.
type line struct {
	to       string
	listener net.Listener

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// newLine makes the agent of w reach the API server over a line.
func newLine(w *watched) *line {
	w.t.Helper()
	cfg, err := clientcmd.LoadFromFile(w.Kubeconfig())
	if err != nil {
		w.t.Fatal(err)
	}
	l := &line{conns: map[net.Conn]bool{}}
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range cfg.Clusters {
		server, err := url.Parse(c.Server)
		if err != nil {
			w.t.Fatal(err)
		}
		l.to = server.Host
		c.TLSServerName = server.Hostname()
		c.Server = "https://" + l.listener.Addr().String()
	}
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, file); err != nil {
		w.t.Fatal(err)
	}
	w.flags = append(w.flags, "--kubeconfig", file)
	var wg sync.WaitGroup
	wg.Go(func() { l.serve(&wg) })
	w.t.Cleanup(func() {
		l.listener.Close()
		l.set(true)
		wg.Wait()
	})
	return l
}

func (l *line) serve(wg *sync.WaitGroup) {
	for {
		in, err := l.listener.Accept()
		if err != nil {
			return // the test is over
		}
		out, err := net.Dial("tcp", l.to)
		if err != nil {
			in.Close()
			continue
		}
		if !l.add(in, out) {
			continue
		}
		for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
			wg.Go(func() {
				_, _ = io.Copy(way[0], way[1]) // either end may close at any time
				in.Close()
				out.Close()
			})
		}
	}
}

func (l *line) add(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		if l.cut {
			c.Close()
			continue
		}
		l.conns[c] = true
	}
	return !l.cut
}

// set cuts the line, or joins it.
func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for c := range l.conns {
		if cut {
			c.Close()
			delete(l.conns, c)
		}
	}
}

func TestAFaultDuringAnOutageOfTheAPIServerIsToldAfterIt(t *testing.T) {
	w := newWatched(t)
	l := newLine(w)
	w.start()
	before := w.until(storage, corev1.ConditionTrue)

	time.Sleep(2 * time.Second) // the API tells transitions by the second
	l.set(true)
	from := time.Now().Truncate(time.Second)
	kmsg(t, shutdown(t))
	kmsg(t, "kernel: BUG: unable to handle kernel NULL pointer dereference at TESTING")
	time.Sleep(5 * time.Second)
	w.stop(syscall.SIGKILL) // and a crash in the middle of it
	w.start()
	time.Sleep(25 * time.Second)
	to := time.Now()
	if c := w.condition(storage); c.Status != corev1.ConditionTrue {
		t.Fatalf("the line was not cut: %+v", c)
	}
	l.set(false)

	after := w.until(storage, corev1.ConditionFalse)
	if at := after.LastTransitionTime.Time; at.Before(from) || at.After(to) || !at.After(before.LastTransitionTime.Time) {
		t.Errorf("the transition is dated %s; the fault was in the outage, from %s to %s", at, from, to)
	}
	for _, reason := range []string{"FilesystemShutdown", "KernelOops"} {
		w.eventually("the event "+reason, func() bool { return len(w.events(reason)) == 1 })
	}
}

// TestTheKubeletsConditionsAreLeftAlone writes the kubelet's conditions the way it
// does, as fast as it goes, while the agent writes its own.
func TestTheKubeletsConditionsAreLeftAlone(t *testing.T) {
	w := newWatched(t)
	w.start()
	w.until(storage, corev1.ConditionTrue)
	theirs := []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure}
	var last string
	const rounds = 20
	for i := range rounds {
		last = fmt.Sprint("round-", i)
		var list []map[string]string
		for _, c := range theirs {
			list = append(list, map[string]string{"type": string(c), "status": "True", "reason": last, "message": last,
				"lastHeartbeatTime": time.Now().UTC().Format(time.RFC3339), "lastTransitionTime": "2026-01-01T00:00:00Z"})
		}
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": list}})
		if err != nil {
			t.Fatal(err)
		}
		w.kubectl("patch", "node", w.node, "--subresource=status", "--type=strategic", "--field-manager=kubelet", "-p", string(patch))
		switch i {
		case rounds / 4:
			kmsg(t, shutdown(t))
		case rounds / 2:
			w.kubectl("annotate", "node", w.node, "ekslogs.io/all-clear=FilesystemShutdown", "--overwrite")
		}
		seen := map[corev1.NodeConditionType]int{}
		for _, c := range w.object().Status.Conditions {
			seen[c.Type]++
			if seen[c.Type] > 1 {
				t.Errorf("round %d: %s is there twice", i, c.Type)
			}
		}
		for _, c := range theirs {
			if got := w.condition(c); got == nil || got.Reason != last {
				t.Errorf("round %d: %s is %+v", i, c, got)
			}
		}
	}
	w.until(storage, corev1.ConditionTrue)
	w.eventually("the fault is told", func() bool { return len(w.events("FilesystemShutdown")) >= 1 })
}
