package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test binary is its own child: CHILD_TEST names what it does then.
func TestMain(m *testing.M) {
	if role := os.Getenv("CHILD_TEST"); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

func play(role string) int {
	switch role {
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
		fmt.Print("last line without an end\nand a half")
	case "fail":
		fmt.Fprintln(os.Stderr, "disk on fire")
		return 7
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "polite":
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("ready")
		<-term
		fmt.Println("tidied up")
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(os.Getpid())
		time.Sleep(time.Minute)
	case "litter": // leaves a grandchild in a process group of its own, holding stdout
		cmd := exec.Command("sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			return 1
		}
		fmt.Println(cmd.Process.Pid)
	case "quiet":
		if err := Quieten(); err != nil {
			fmt.Println("error:", err)
		}
		self, _ := procfs.Self()
		threads, _ := procfs.AllThreads(self.PID)
		for _, thread := range threads {
			stat, _ := thread.Stat()
			prio, _, _ := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(thread.PID), 0)
			fmt.Printf("nice %d io class %d\n", stat.Nice, prio>>ioprioClassShift)
		}
		adj, _ := os.ReadFile("/proc/self/oom_score_adj")
		fmt.Printf("oom_score_adj %s", adj)
	case "parent": // runs a child and waits to be killed
		_ = Run(context.Background(), spec("polite", func(line string) { fmt.Println(os.Getpid(), line) }, func(s *Spec) {
			s.OnStart = func(pid int) { fmt.Println("child", pid) }
		}))
	}
	return 0
}

func spec(role string, onLine func(string), change ...func(*Spec)) Spec {
	s := Spec{Path: "/proc/self/exe", Env: []string{"CHILD_TEST=" + role, "PATH=" + os.Getenv("PATH")}, OnLine: func(b []byte) { onLine(string(b)) }}
	for _, f := range change {
		f(&s)
	}
	return s
}

func alive(pid int) bool {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return false
	}
	stat, err := p.Stat()
	return err == nil && stat.State != "Z"
}

func TestRunPassesInputAndLines(t *testing.T) {
	long := strings.Repeat("x", 2*maxLine)
	var got []string
	err := Run(t.Context(), spec("echo", func(l string) { got = append(got, l) }, func(s *Spec) {
		s.Stdin = []byte("one\n" + long + "\n\nthree\n")
	}))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"one", "", "three", "last line without an end"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %d lines %.200q, want %q", len(got), got, want)
	}
}

func TestRunTellsHowTheChildEnded(t *testing.T) {
	for role, want := range map[string]string{"fail": "exit code 7", "die": "SIGKILL"} {
		var said strings.Builder
		err := Run(t.Context(), spec(role, func(string) {}, func(s *Spec) { s.Stderr = &said }))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", role, err, want)
		}
		if role == "fail" && said.String() != "disk on fire\n" {
			t.Errorf("stderr %q", said.String())
		}
	}
	if err := Run(t.Context(), Spec{Path: "/nowhere"}); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("got %v", err)
	}
}

func TestRunLetsTheChildTidyUpWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the object was deleted")
	var got []string
	err := Run(ctx, spec("polite", func(l string) {
		got = append(got, l)
		cancel(why)
	}))
	if !errors.Is(err, why) || fmt.Sprint(got) != "[ready tidied up]" {
		t.Errorf("%v after %q", err, got)
	}
}

func TestRunKillsAChildThatIgnoresSIGTERM(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var pid int
	err := Run(ctx, spec("stubborn", func(string) { cancel() }, func(s *Spec) {
		s.Grace = 300 * time.Millisecond
		s.OnStart = func(p int) { pid = p }
	}))
	if !errors.Is(err, context.Canceled) || errors.Is(err, ErrAbandoned) || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v", err)
	}
	if alive(pid) {
		t.Errorf("process %d lives on", pid)
	}
}

func TestRunLeavesNoGrandchildren(t *testing.T) {
	var pid int
	if err := Run(t.Context(), spec("litter", func(l string) { pid, _ = strconv.Atoi(l) })); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if !alive(pid) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("grandchild %d lives on", pid)
}

func TestQuietenReachesEveryThread(t *testing.T) {
	var got []string
	if err := Run(t.Context(), spec("quiet", func(l string) { got = append(got, l) })); err != nil {
		t.Fatal(err)
	}
	if len(got) < 3 {
		t.Fatalf("too few threads to tell: %q", got)
	}
	for _, l := range got[:len(got)-1] {
		if l != "nice 19 io class 3" {
			t.Errorf("got %q", l)
		}
	}
	if got[len(got)-1] != "oom_score_adj 1000" {
		t.Errorf("got %q", got[len(got)-1])
	}
}

func TestTheChildEndsWhenItsParentIsKilled(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"CHILD_TEST=parent"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	scan := bufio.NewScanner(out)
	for scan.Scan() {
		if strings.HasPrefix(scan.Text(), "child ") {
			pid, _ = strconv.Atoi(strings.Fields(scan.Text())[1])
		}
		if strings.HasSuffix(scan.Text(), "ready") {
			break
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for range 100 {
		if !alive(pid) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("child %d outlived its parent", pid)
}

// frozen freezes a process such that not even SIGKILL ends it, as a process that
// hangs in the kernel: the freezer of cgroup v1 does that. It returns the thaw.
func frozen(t *testing.T, pid int) (thaw func()) {
	t.Helper()
	dir := fmt.Sprintf("/sys/fs/cgroup/freezer/child-test-%d", pid)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("a process that cannot be killed takes root and the freezer of cgroup v1: %v", err)
	}
	set := func(file, value string) {
		if err := os.WriteFile(dir+"/"+file, []byte(value), 0); err != nil {
			t.Error(err)
		}
	}
	set("cgroup.procs", strconv.Itoa(pid))
	set("freezer.state", "FROZEN")
	return func() {
		set("freezer.state", "THAWED")
		for range 500 {
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("%s does not empty", dir)
	}
}

func TestRunAbandonsAChildThatCannotBeKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var pid int
	var thaw func()
	gone := make(chan struct{})
	err := Run(ctx, spec("stubborn", func(l string) {
		pid, _ = strconv.Atoi(l)
		thaw = frozen(t, pid)
		cancel()
	}, func(s *Spec) {
		s.Grace = 100 * time.Millisecond
		s.OnGone = func() { close(gone) }
	}))
	if !errors.Is(err, ErrAbandoned) || !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), strconv.Itoa(pid)) {
		t.Errorf("got %v", err)
	}
	select {
	case <-gone:
		t.Error("told of its end too early")
	default:
	}
	thaw()
	<-gone
}
