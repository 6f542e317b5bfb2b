// Package child runs one process whose memory, CPU time and fate are its own: the
// caller only supervises it. It may run out of memory, hang or be killed without
// any harm to the caller but an error.
package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ErrAbandoned says that the child outlived SIGKILL by its grace period: it hangs
// in the kernel. Nobody waits for it any more.
var ErrAbandoned = errors.New("cannot be killed, abandoned")

// Spec is the process to run.
type Spec struct {
	// Path and Args are the program and its arguments, Env its whole environment.
	Path string
	Args []string
	Env  []string
	// Stdin is what the process reads.
	Stdin []byte
	// OnLine takes each line of the process's output, without its end, from one
	// goroutine at a time, and never after Run has returned. Lines over 1 MiB are
	// left out. The slice is valid during the call.
	OnLine func(line []byte)
	// Stderr takes what the process says. Nil discards it.
	Stderr io.Writer
	// Grace is how long the process may take to end after SIGTERM, and after that
	// to die of SIGKILL. 0 means 5 s.
	Grace time.Duration
	// OnStart is told the process's id.
	OnStart func(pid int)
	// OnGone is called when a process that Run has abandoned is gone after all. It
	// is not called for others.
	OnGone func()
}

// Run runs the process in a session of its own and waits for it. When ctx ends the
// process gets SIGTERM and, after the grace period, its whole session SIGKILL; the
// error then wraps ctx's. When the caller's process dies the child gets SIGTERM.
// What the process has started in its session and left behind is killed.
func Run(ctx context.Context, s Spec) error {
	grace := s.Grace
	if grace <= 0 {
		grace = 5 * time.Second
	}
	out, said := newGate(&lines{each: s.OnLine}), newGate(s.Stderr)
	defer out.shut()
	defer said.shut()
	cmd := &exec.Cmd{
		Path: s.Path, Args: append([]string{s.Path}, s.Args...), Env: s.Env, Dir: "/",
		Stdin: bytes.NewReader(s.Stdin), Stdout: out, Stderr: said,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM},
		// A grandchild may hold the pipes open after the process itself has ended.
		WaitDelay: time.Second,
	}
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when the thread that forked
		// ends, so that thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", s.Path, err)
	}
	pid := cmd.Process.Pid
	if s.OnStart != nil {
		s.OnStart(pid)
	}
	defer killSession(pid)

	select {
	case err := <-done:
		return describe(err)
	case <-ctx.Done():
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	if wait(done, grace) {
		return fmt.Errorf("ended: %w", context.Cause(ctx))
	}
	killSession(pid)
	if wait(done, grace) {
		return fmt.Errorf("killed: %w", context.Cause(ctx))
	}
	if s.OnGone != nil {
		go func() {
			<-done //nolint:errcheck // how an abandoned child ends helps nobody any more
			s.OnGone()
		}()
	}
	return fmt.Errorf("process %d %w (%w)", pid, ErrAbandoned, context.Cause(ctx))
}

func wait(done <-chan error, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done: //nolint:errcheck // Run reads how it ended from the process itself
		return true
	case <-t.C:
		return false
	}
}

// describe turns an end of the process into words. Nil is a clean one.
func describe(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil
	case !errors.As(err, &exit):
		return err
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	switch {
	case ok && status.Signaled() && status.Signal() == syscall.SIGKILL:
		return errors.New("was killed (SIGKILL): out of memory, or by hand; the kernel's log says which")
	case ok && status.Signaled():
		return fmt.Errorf("ended by signal: %s", status.Signal())
	}
	return fmt.Errorf("ended with exit code %d", exit.ExitCode())
}
