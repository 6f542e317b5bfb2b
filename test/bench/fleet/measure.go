package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/creack/pty"
)

// sample is one run of a command.
type sample struct {
	wall, cpu time.Duration
	// rss is the largest resident set, in KiB.
	rss int64
}

// measure runs a command with its output thrown away.
func measure(ctx context.Context, name string, args ...string) (sample, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	begun := time.Now()
	if err := cmd.Run(); err != nil {
		return sample{}, fmt.Errorf("%s: %w", cmd, err)
	}
	s := sample{wall: time.Since(begun), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.rss = u.Maxrss
	}
	return s, nil
}

const (
	updatesPerSecond = 50
	watchFor         = 10 * time.Second
	settle           = 15 * time.Second
)

// watch measures the CPU time of the live table while nodes change.
func (b *bench) watch(ctx context.Context, f *filler) error {
	cmd := exec.CommandContext(ctx, b.plugin, "--kubeconfig", b.kubeconfig, "nodes", "summary", "--watch")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 160, Rows: 50})
	if err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		_ = tty.Close()
	}()
	go func() { _, _ = io.Copy(io.Discard, tty) }()
	// It reads the whole list first, which is not what is measured.
	time.Sleep(settle)
	before, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	begun := time.Now()
	updates, err := f.update(ctx, b.nodes, updatesPerSecond, watchFor)
	if err != nil {
		return err
	}
	after, err := cpuTime(cmd.Process.Pid)
	if err != nil {
		return err
	}
	seconds := time.Since(begun).Seconds()
	perSecond := time.Duration(float64(after-before) / seconds)
	fmt.Printf("%-32s %10.0f a second\n", "updates while watching", float64(updates)/seconds)
	b.judge("CPU of --watch, each second", perSecond.Round(time.Millisecond).String(), maxCPU.String(), perSecond <= maxCPU)
	return nil
}

// cpuTime is the CPU time of a process so far (utime and stime of proc(5)'s stat, in
// ticks of 10 ms).
func cpuTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold spaces.
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond, err
}
