package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup accounts the CPU time of a process and of all that it starts, however
// short they live.
type cgroup struct {
	dir, before string // folders of the cgroup, and of the one that the process was in
	usage       *os.File
	unified     bool
	buf         [512]byte
}

// newCgroup makes a cgroup and moves the processes into it, in the version that
// the machine accounts CPU time with.
func newCgroup(pids []int) (*cgroup, error) {
	root, v2 := "/sys/fs/cgroup/cpuacct", false
	if _, err := os.Stat(root); err != nil {
		root, v2 = "/sys/fs/cgroup", true
	}
	path, err := cgroupPath(pids[0], v2)
	if err != nil {
		return nil, err
	}
	g := &cgroup{dir: filepath.Join(root, fmt.Sprintf("ekslogs-quiet-%d", pids[0])), before: filepath.Join(root, path), unified: v2}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w; run it as root", err)
	}
	name := "cpuacct.usage"
	if v2 {
		name = "cpu.stat"
	}
	if g.usage, err = os.Open(filepath.Join(g.dir, name)); err != nil {
		return nil, errors.Join(err, os.Remove(g.dir))
	}
	for _, pid := range pids {
		if err := move(g.dir, pid); err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	return g, nil
}

// used is the CPU time that the cgroup has had so far.
func (g *cgroup) used() (time.Duration, error) {
	n, err := g.usage.ReadAt(g.buf[:], 0)
	if n == 0 {
		return 0, err
	}
	first, _, _ := strings.Cut(string(g.buf[:n]), "\n")
	unit := time.Nanosecond
	if g.unified {
		first, unit = strings.TrimPrefix(first, "usage_usec "), time.Microsecond
	}
	value, err := strconv.ParseInt(first, 10, 64)
	return time.Duration(value) * unit, err
}

// close moves what is in the cgroup back and removes it.
func (g *cgroup) close() error {
	text, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	for field := range strings.FieldsSeq(string(text)) {
		pid, convErr := strconv.Atoi(field)
		err = errors.Join(err, convErr)
		if moveErr := move(g.before, pid); !errors.Is(moveErr, unix.ESRCH) {
			err = errors.Join(err, moveErr)
		}
	}
	return errors.Join(err, g.usage.Close(), os.Remove(g.dir))
}

func move(dir string, pid int) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// cgroupPath is the cgroup that a process is in, from /proc/PID/cgroup.
func cgroupPath(pid int, v2 bool) (string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && (v2 && parts[1] == "" || !v2 && strings.Contains(","+parts[1]+",", ",cpuacct,")) {
			return parts[2], nil
		}
	}
	return "", fmt.Errorf("process %d is in no cgroup that accounts CPU time", pid)
}
