package nvmlhelper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
	"github.com/ekslogs/ekslogs/test/fakenvml"
)

// TestMain makes the test's own binary the child.
func TestMain(m *testing.M) {
	if library := os.Getenv("NVMLHELPER_TEST_CHILD"); library != "" {
		if err := Serve(os.Stdin, os.Stdout, library); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func buildFake(t *testing.T) *fakenvml.Library {
	t.Helper()
	if !Available {
		t.Skip("this build has no NVML: needs cgo")
	}
	lib, err := fakenvml.Build(t.TempDir())
	if errors.Is(err, fakenvml.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func childOf(lib *fakenvml.Library) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "NVMLHELPER_TEST_CHILD="+lib.Path)
		cmd.Env = append(cmd.Env, lib.Env()...)
		return cmd
	}
}

func startHelper(t *testing.T, o Options) *Helper {
	t.Helper()
	h := NewHelper(o)
	t.Cleanup(h.Stop)
	return h
}

func poll(t *testing.T, h *Helper) gpustate.State {
	t.Helper()
	s, err := h.Poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func set(t *testing.T, lib *fakenvml.Library, answers map[string]int) {
	t.Helper()
	if err := lib.Set(answers); err != nil {
		t.Fatal(err)
	}
}

// holdsDevice says whether the child has the device file open.
func holdsDevice(t *testing.T, h *Helper, lib *fakenvml.Library) bool {
	t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", h.PID()))
	if err != nil || len(fds) == 0 {
		t.Fatalf("the child's files: %v, %v", fds, err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); to == lib.DevicePath {
			return true
		}
	}
	return false
}

// waitFor waits until ok, for as long as the test may run.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s did not happen", what)
}

func TestASampleThroughTheChild(t *testing.T) {
	lib := buildFake(t)
	h := startHelper(t, Options{Command: childOf(lib)})
	s := poll(t, h)
	if len(s.GPUs) != 8 || s.Driver != "570.133.20" {
		t.Fatalf("sample %+v", s)
	}
	g := s.GPUs[2]
	if g.UUID != "GPU-00000000-0000-0000-0000-000000000002" || g.PCI != "0000:73:00" || *g.Temperature != 34 || len(g.Links) != 18 ||
		!g.Links[17] || g.Fabric == nil || g.Fabric.State != 3 || *g.Fabric.Health != 0x51aa || *g.Recovery != 0 || g.RetiredPages != nil || g.Rows == nil {
		t.Errorf("GPU 2: %+v", g)
	}
	set(t, lib, map[string]int{"count": 7, "gpu1.return": 15, "gpu2.recovery": 4, "gpu3.failure": 1, "gpu0.link5": 0})
	s = poll(t, h)
	if len(s.GPUs) != 7 || !s.GPUs[1].Lost || *s.GPUs[2].Recovery != 4 || !s.GPUs[3].Rows.Failure || s.GPUs[0].Links[5] {
		t.Errorf("changed sample %+v", s)
	}
}

func TestAHangingDriverLeavesOneChild(t *testing.T) {
	lib := buildFake(t)
	started := 0
	h := startHelper(t, Options{Wait: 50 * time.Millisecond, HungAfter: 300 * time.Millisecond, Command: func() *exec.Cmd {
		started++
		// A child that survives being killed: what is killed is the shell before it.
		cmd := childOf(lib)()
		shell := exec.Command("sh", "-c", `"$0" <&3 & wait`, cmd.Path)
		shell.Env = cmd.Env
		return withStdinCopy(shell)
	}})
	waitFor(t, "the first sample", func() bool { _, err := h.Poll(t.Context()); return err == nil })
	set(t, lib, map[string]int{"hang": 1})
	if _, err := h.Poll(t.Context()); !errors.Is(err, ErrBusy) {
		t.Fatalf("at first: %v, want ErrBusy", err)
	}
	waitFor(t, "ErrHung", func() bool { _, err := h.Poll(t.Context()); return errors.Is(err, ErrHung) })
	for range 20 {
		if _, err := h.Poll(t.Context()); !errors.Is(err, ErrHung) {
			t.Fatalf("while it hangs: %v, want ErrHung", err)
		}
	}
	if started != 1 {
		t.Errorf("%d children were started, want 1", started)
	}
	set(t, lib, nil)
	waitFor(t, "a sample after the hang", func() bool { _, err := h.Poll(t.Context()); return err == nil })
}

// withStdinCopy is for a shell that gives its standard input on as file 3, since
// shells take it away from what they run in the background.
func withStdinCopy(shell *exec.Cmd) *exec.Cmd {
	shell.Args[2] = `exec 3<&0; ` + shell.Args[2]
	return shell
}

func TestAChildThatDiesIsStartedAgain(t *testing.T) {
	lib := buildFake(t)
	h := startHelper(t, Options{Command: childOf(lib)})
	poll(t, h)
	first := h.PID()
	process, err := os.FindProcess(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the child", func() bool { return h.PID() == 0 })
	poll(t, h)
	if h.PID() == first {
		t.Error("the same child answers")
	}
}

func TestARepairFindsTheDeviceClosed(t *testing.T) {
	lib := buildFake(t)
	h := startHelper(t, Options{Command: childOf(lib)})
	poll(t, h)
	if !holdsDevice(t, h, lib) {
		t.Fatal("NVML is not open after a sample")
	}
	set(t, lib, map[string]int{"gpu3.recovery": 1})
	poll(t, h)
	if holdsDevice(t, h, lib) {
		t.Error("NVML is open while a GPU waits for a reset")
	}
	set(t, lib, nil)
	poll(t, h)
	if !holdsDevice(t, h, lib) {
		t.Error("NVML was not opened again after the repair")
	}
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if holdsDevice(t, h, lib) {
		t.Error("NVML is open after Close")
	}
	poll(t, h)
}

func TestEventsArePushed(t *testing.T) {
	lib := buildFake(t)
	events := make(chan Event, 4)
	h := startHelper(t, Options{Command: childOf(lib), OnEvent: func(e Event) { events <- e }})
	poll(t, h)
	set(t, lib, map[string]int{"event": 1, "event.gpu": 2, "event.xid": 79})
	e := <-events
	if e.Xid != 79 || e.PCI != "0000:73:00" || e.DoubleBit || e.At.IsZero() {
		t.Errorf("event %+v", e)
	}
	set(t, lib, map[string]int{"event": 2, "event.gpu": 1, "event.type": 2})
	if e := <-events; !e.DoubleBit || e.Xid != 0 || e.UUID != "GPU-00000000-0000-0000-0000-000000000001" {
		t.Errorf("event %+v", e)
	}
}

func TestWhyNVMLIsUnavailable(t *testing.T) {
	lib := buildFake(t)
	for answer, want := range map[int]Cause{18: CauseMismatch, 9: CauseNoDriver, 4: CausePermission, 12: CauseNoLibrary, 999: CauseOther} {
		set(t, lib, map[string]int{"init": answer})
		h := startHelper(t, Options{Command: childOf(lib)})
		var u *Unavailable
		if _, err := h.Poll(t.Context()); !errors.As(err, &u) || u.Cause != want {
			t.Errorf("nvmlInit returning %d gives %v, want cause %s", answer, err, want)
		}
		set(t, lib, nil)
		poll(t, h)
	}
	missing := &fakenvml.Library{Path: "/nonexistent/libnvidia-ml.so.1"}
	h := startHelper(t, Options{Command: childOf(missing)})
	var u *Unavailable
	if _, err := h.Poll(t.Context()); !errors.As(err, &u) || u.Cause != CauseNoLibrary {
		t.Errorf("without a library: %v", err)
	}
}

func TestAProgramThatIsNoHelper(t *testing.T) {
	for _, argv := range [][]string{{"true"}, {"/nonexistent"}, {"sh", "-c", "echo nonsense; exit 3"}} {
		h := startHelper(t, Options{Command: func() *exec.Cmd { return exec.Command(argv[0], argv[1:]...) }})
		if s, err := h.Poll(context.Background()); err == nil {
			t.Errorf("%v gives the sample %+v", argv, s)
		}
	}
}
