package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrAbsent says that the host does not have the program that was to run. It is
// a fact about the host, not a failure.
var ErrAbsent = errors.New("not installed on this host")

// ErrAbandoned says that a child outlived SIGKILL by its grace period: it hangs in
// the kernel (state D). Nobody waits for it any more.
var ErrAbandoned = errors.New("cannot be killed, abandoned")

// searchPath is where the host's programs are looked for: the PATH of a container
// says nothing about the host.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin"

// LookPath finds a program of the host by name, or by absolute path, and returns
// its path on the host. The error is ErrAbsent when there is none.
func (h *Host) LookPath(name string) (string, error) {
	candidates := []string{name}
	if !strings.HasPrefix(name, "/") {
		candidates = candidates[:0]
		for dir := range strings.SplitSeq(searchPath, ":") {
			candidates = append(candidates, dir+"/"+name)
		}
	}
	for _, path := range candidates {
		f, err := h.Open(path)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		f.Close()
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrAbsent)
}

// Command is one program of the host to run, bounded.
type Command struct {
	// Argv is the program and its arguments. The program is found by LookPath.
	Argv []string
	// Env is added to a minimal environment (PATH, HOME, LC_ALL=C.UTF-8, TERM=dumb).
	Env []string
	// Timeout ends the program with SIGKILL. 0 means 30 s.
	Timeout time.Duration
	// Stdout and Stderr take the output. Nil discards it.
	Stdout, Stderr io.Writer
}

// Result is how a command ended.
type Result struct {
	// ExitCode is the program's exit status; -1 when it was killed or abandoned.
	ExitCode int
	// TimedOut is set when Timeout or the context ended it.
	TimedOut bool
	// Elapsed is how long it ran.
	Elapsed time.Duration
}

// killGrace is how long a child may take to die of SIGKILL.
const killGrace = 2 * time.Second

// Run runs c under the host's root (chroot(2) when that is not "/") in a process
// group of its own and waits for it. A non-zero exit is an error that says the
// command line and the status. After Timeout the whole group is killed; when even
// that does not end it within two seconds, Run returns ErrAbandoned and leaves the
// child and the pipes to a goroutine that ends when the child does; no writer is
// written to after Run has returned.
func (h *Host) Run(ctx context.Context, c Command) (Result, error) {
	path, err := h.LookPath(c.Argv[0])
	if err != nil {
		return Result{ExitCode: -1}, err
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	out, errw := newGate(c.Stdout), newGate(c.Stderr)
	defer out.shut()
	defer errw.shut()
	cmd := &exec.Cmd{
		Path: path, Args: c.Argv, Stdout: out, Stderr: errw, Dir: "/",
		Env:         append([]string{"PATH=" + searchPath, "HOME=/root", "LC_ALL=C.UTF-8", "TERM=dumb"}, c.Env...),
		SysProcAttr: h.sysProcAttr(),
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return Result{ExitCode: -1}, fmt.Errorf("%s: %w", strings.Join(c.Argv, " "), err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()

	var abandoned, timedOut bool
	select {
	case err = <-done:
	case <-ctx.Done():
		timedOut = true
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		select {
		case err = <-done:
		case <-time.After(killGrace):
			abandoned = true
		}
	}
	r := Result{ExitCode: -1, TimedOut: timedOut, Elapsed: time.Since(start)}
	switch {
	case abandoned:
		return r, fmt.Errorf("%s: %w", strings.Join(c.Argv, " "), ErrAbandoned)
	case timedOut:
		return r, fmt.Errorf("%s: ended after %s: %w", strings.Join(c.Argv, " "), r.Elapsed.Round(time.Millisecond), ctx.Err())
	case err != nil:
		r.ExitCode = cmd.ProcessState.ExitCode()
		return r, fmt.Errorf("%s: %w", strings.Join(c.Argv, " "), err)
	}
	r.ExitCode = 0
	return r, nil
}

func (h *Host) sysProcAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: 0}
	if h.root != "/" {
		attr.Chroot = h.root
	}
	return attr
}

// gate passes writes on until it is shut, so that an abandoned child's output
// goes nowhere.
type gate struct {
	mu     sync.Mutex
	w      io.Writer
	closed bool
}

func newGate(w io.Writer) *gate {
	if w == nil {
		w = io.Discard
	}
	return &gate{w: w}
}

// shut waits for a write in progress.
func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, os.ErrClosed
	}
	return g.w.Write(p)
}
