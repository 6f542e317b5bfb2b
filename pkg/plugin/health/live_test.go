package health

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"github.com/ekslogs/ekslogs/test/fleet"
)

// session is the program in a pseudo-terminal.
type session struct {
	t   *testing.T
	tty *os.File
	mu  sync.Mutex
	out bytes.Buffer
}

// inTerminal starts the test binary as kubectl-health in a terminal of 120 × 20.
func inTerminal(t *testing.T, kubeconfig string, env []string, args ...string) (*session, *exec.Cmd) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The test binary goes by its name.
	program := filepath.Join(t.TempDir(), "kubectl-health")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), append([]string{"KUBECONFIG=" + kubeconfig, "TERM=xterm-256color"}, env...)...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 120, Rows: 20})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, tty: tty}
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, err := tty.Read(buf)
			s.mu.Lock()
			s.out.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { _ = tty.Close() })
	return s, cmd
}

func (s *session) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ansi.Strip(s.out.String())
}

// sees waits until text is drawn, after what was drawn before the last call of press.
func (s *session) sees(text string) {
	s.t.Helper()
	end := time.Now().Add(30 * time.Second)
	for !strings.Contains(s.seen(), text) {
		if time.Now().After(end) {
			s.t.Fatalf("%q was never drawn; seen:\n%s", text, s.seen())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *session) press(keys string) {
	s.t.Helper()
	s.mu.Lock()
	s.out.Reset()
	s.mu.Unlock()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func TestTheLiveViewFollowsKeysAndChanges(t *testing.T) {
	now := time.Now()
	nodes := fleet.Light(now)
	api := newFakeAPI(t, nodes...)
	s, cmd := inTerminal(t, api.kubeconfig(t), nil, "nodes", "watch")
	s.sees("1 sick")
	s.sees("gpu-1.test")

	s.press("?")
	s.sees("bring the node's log bundle home")
	s.press("q")
	s.sees("gpu-1.test")

	s.press("/cpu-3")
	s.sees("filter")
	s.press("\r")
	s.sees("1/1 by")
	s.press("\r")
	s.sees("KubeletHasNoDiskPressure")
	s.press("q")
	s.sees("Unmonitored")

	// A change comes without a key.
	s.press("")
	sick := nodes[4].DeepCopy()
	sick.Status.Conditions[0].Status, sick.Status.Conditions[0].Reason = "False", "KubeletNotReady"
	api.set(sick)
	s.sees("KubeletNotReady")

	s.press("q")
	if err := cmd.Wait(); err != nil {
		t.Errorf("after q: %v", err)
	}
}

func TestTheLiveViewFetchesABundle(t *testing.T) {
	api := newFakeAPI(t, fleet.Light(time.Now())...)
	dir := t.TempDir()
	// Stands in for kubectl, and tells how it was called.
	script := "#!/bin/sh\necho \"called with $*\"\n"
	if err := os.WriteFile(filepath.Join(dir, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s, cmd := inTerminal(t, api.kubeconfig(t), []string{"PATH=" + dir + ":" + os.Getenv("PATH")}, "nodes", "watch", "-l", fleet.Label+"=light")
	s.sees("gpu-1.test")
	s.press("l")
	s.sees("called with ekslogs gpu-1.test -q")
	s.press("\x03")
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
}

func TestWatchWithoutATerminalPrintsWhatChanges(t *testing.T) {
	nodes := fleet.Light(time.Now())
	api := newFakeAPI(t, nodes...)
	ctx, cancel := context.WithCancelCause(t.Context())
	out, errOut := &safeBuffer{}, &safeBuffer{}
	done := make(chan int)
	go func() { done <- runWith(ctx, api.kubeconfig(t), out, errOut, "nodes", "watch") }()
	eventually(t, "the table", func() bool { return strings.Contains(out.String(), "5 nodes") })
	sick := nodes[4].DeepCopy()
	sick.Status.Conditions[0].Status, sick.Status.Conditions[0].Reason = "False", "KubeletNotReady"
	api.set(sick)
	eventually(t, "the change", func() bool { return strings.Contains(out.String(), "KubeletNotReady") })
	cancel(errInterrupted)
	if code := <-done; code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if got := strings.Count(out.String(), "gpu-2.test"); got != 1 {
		t.Errorf("a node that has not changed was printed %d times:\n%s", got, out.String())
	}
	if got := strings.Count(out.String(), "NODE "); got != 1 {
		t.Errorf("%d headers:\n%s", got, out.String())
	}
}
