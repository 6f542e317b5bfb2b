package collect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// statFields are the fields of /proc/PID/stat after the name: field 3 of proc(5)
// comes first. The name may hold blanks and parentheses.
func statFields(stat string) []string {
	i := strings.LastIndexByte(stat, ')')
	if i < 0 {
		return nil
	}
	return strings.Fields(stat[i+1:])
}

// eachStat calls f with /proc/PID/stat of every process.
func eachStat(ctx context.Context, e *env, f func(pid int, stat string) error) error {
	all := pids(e.host)
	if len(all) == 0 {
		return absent("no processes below /proc")
	}
	for _, pid := range all {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		stat, err := e.host.ReadString("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue // it has ended
		}
		if err := f(pid, stat); err != nil {
			return err
		}
	}
	return nil
}

// allStat is every process's line of numbers.
func allStat(ctx context.Context, e *env, w io.Writer) error {
	return eachStat(ctx, e, func(_ int, stat string) error {
		_, err := fmt.Fprintln(w, stat)
		return err
	})
}

// ioDelays lists the processes that were blocked on I/O, the worst first: field 42
// of /proc/PID/stat, in clock ticks, if delay accounting is on.
func ioDelays(ctx context.Context, e *env, w io.Writer) error {
	type row struct {
		ticks uint64
		pid   int
		comm  string
	}
	var rows []row
	err := eachStat(ctx, e, func(pid int, stat string) error {
		f := statFields(stat)
		if len(f) < 40 {
			return nil
		}
		ticks, err := strconv.ParseUint(f[39], 10, 64)
		if err == nil && ticks > 0 {
			comm := stat[strings.IndexByte(stat, '(')+1 : strings.LastIndexByte(stat, ')')]
			rows = append(rows, row{ticks, pid, comm})
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(b.ticks, a.ticks), cmp.Compare(a.pid, b.pid)) })
	fmt.Fprintf(w, "# clock ticks blocked on I/O since start; kernel.task_delayacct=%s\nTICKS PID COMM\n", hostFact(e.host, "/proc/sys/kernel/task_delayacct"))
	for _, r := range rows {
		if _, err := fmt.Fprintln(w, r.ticks, r.pid, r.comm); err != nil {
			return err
		}
	}
	return nil
}

const (
	// largeEnvironment is from where on an environment is told of, in bytes. Exec
	// fails when arguments and environment together pass a quarter of the stack.
	largeEnvironment = 16 << 10
	maxEnvironment   = 4 << 20
)

// largeEnvironments counts the environments of processes. Nothing of their
// content leaves this function.
func largeEnvironments(ctx context.Context, e *env, w io.Writer) error {
	all := pids(e.host)
	if len(all) == 0 {
		return absent("no processes below /proc")
	}
	fmt.Fprintf(w, "# processes whose environment has more than %d bytes: counts only\nBYTES VARIABLES PID COMM\n", largeEnvironment)
	buf := make([]byte, 64<<10)
	for _, pid := range all {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		dir := "/proc/" + strconv.Itoa(pid)
		f, err := e.host.Open(dir + "/environ")
		if err != nil {
			continue
		}
		size, vars := 0, 0
		for size < maxEnvironment {
			n, err := f.Read(buf)
			size += n
			for _, c := range buf[:n] {
				if c == 0 {
					vars++
				}
			}
			if err != nil || n == 0 {
				break
			}
		}
		_ = f.Close()
		clear(buf)
		if size > largeEnvironment {
			if _, err := fmt.Fprintln(w, size, vars, pid, hostFact(e.host, dir+"/comm")); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	maxCgroups     = 20_000
	maxCgroupDepth = 8
)

// cpuThrottling lists the control groups that were throttled, both versions.
func cpuThrottling(ctx context.Context, e *env, w io.Writer) error {
	root := ""
	for _, dir := range []string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"} {
		if e.host.Exists(dir) {
			root = dir
			break
		}
	}
	if root == "" {
		return absent("no /sys/fs/cgroup")
	}
	fmt.Fprintf(w, "# control groups below %s with nr_throttled > 0\n", root)
	seen := 0
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		if seen++; seen > maxCgroups || depth > maxCgroupDepth {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		stat, err := e.host.ReadString(dir + "/cpu.stat")
		if err == nil && throttled(stat) {
			if _, err := fmt.Fprintf(w, "%s: %s\n", strings.TrimPrefix(dir, root), strings.ReplaceAll(stat, "\n", ", ")); err != nil {
				return err
			}
		}
		entries, err := e.host.ReadDir(dir)
		if err != nil {
			return nil // it has gone
		}
		for _, d := range entries {
			if d.IsDir() {
				if err := walk(dir+"/"+d.Name(), depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return walk(root, 0)
}

func throttled(stat string) bool {
	for line := range strings.Lines(stat) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "nr_throttled "); ok {
			return n != "0"
		}
	}
	return false
}
