package onenode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a running program, told from a later one with the same pid by its
// start time (field 22 of /proc/PID/stat, proc_pid_stat(5)).
type process struct {
	pid   int
	start uint64
}

// statOf reads the state letter and the start time of a pid.
func statOf(pid int) (state byte, start uint64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The command may hold spaces and brackets: the fields count from its last one.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return 0, 0, fmt.Errorf("/proc/%d/stat is cut short", pid)
	}
	start, err = strconv.ParseUint(fields[19], 10, 64)
	return fields[0][0], start, err
}

// alive tells whether the process still runs. A zombie counts as gone: a PID 1
// that is no real init may reap it late.
func (p process) alive() bool {
	state, start, err := statOf(p.pid)
	return err == nil && state != 'Z' && start == p.start
}

// signal sends sig if the process is still the same one.
func (p process) signal(sig syscall.Signal) {
	if p.alive() {
		_ = syscall.Kill(p.pid, sig)
	}
}

// end sends SIGTERM, waits up to patience and sends SIGKILL. It tells whether that
// was needed.
func (p process) end(patience time.Duration) (killed bool) {
	p.signal(syscall.SIGTERM)
	if p.gone(patience) {
		return false
	}
	p.signal(syscall.SIGKILL)
	p.gone(5 * time.Second)
	return true
}

func (p process) gone(within time.Duration) bool {
	for deadline := time.Now().Add(within); p.alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func (c *Cluster) pidFile(name string) string { return c.run("pids", name) }

// process returns the process that up started under this name, if it still runs.
func (c *Cluster) process(name string) (process, bool) {
	var p process
	b, err := os.ReadFile(c.pidFile(name))
	if err != nil {
		return p, false
	}
	if _, err := fmt.Sscan(string(b), &p.pid, &p.start); err != nil {
		return p, false
	}
	return p, p.alive()
}

// start starts a program in a session of its own with its output in Log(name),
// unless it already runs. attr may be nil.
func (c *Cluster) start(name string, attr *syscall.SysProcAttr, argv ...string) error {
	if _, ok := c.process(name); ok {
		return nil
	}
	log, err := os.OpenFile(c.Log(name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	attr.Setsid = true
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr, cmd.Dir = log, log, attr, "/"
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, start, err := statOf(cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("%s ended at once: see %s", name, c.Log(name))
	}
	go func() { _ = cmd.Wait() }() // only so that it is no zombie while this program lives
	return os.WriteFile(c.pidFile(name), fmt.Appendf(nil, "%d %d\n", cmd.Process.Pid, start), 0o600)
}

// errNotYet is a poll's answer for "in order, only not there yet".
var errNotYet = errors.New("not yet")

// await polls until check returns nil. It fails when the named process has ended
// meanwhile (what is then said, with the end of its log) or when the time is over.
func (c *Cluster) await(ctx context.Context, name, what string, within time.Duration, check func(context.Context) error) error {
	deadline := time.Now().Add(within)
	for {
		attempt, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := check(attempt)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if _, ok := c.process(name); !ok {
			return fmt.Errorf("%s ended before %s; the end of its log:\n%s", name, what, c.tail(name))
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no %s within %s: %w; the end of the log of %s:\n%s", what, within, err, name, c.tail(name))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// tail is the end of what a process logged, to files or to the journal.
func (c *Cluster) tail(name string) string {
	b, _ := os.ReadFile(c.Log(name))
	if len(bytes.TrimSpace(b)) == 0 {
		b, _ = exec.Command("journalctl", "-q", "-t", name, "-n", "15", "--no-pager", "-o", "cat").CombinedOutput()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return "  " + strings.Join(lines[max(0, len(lines)-15):], "\n  ")
}
