package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

const (
	// envLimit is how many variables a process may have.
	envLimit = 1000
	// envSmall is a size in bytes that so many variables with names of their own do not
	// fit into ("ab=" and its end are 4).
	envSmall = 4 * envLimit
	// envBatch bounds the processes that are looked at in one run.
	envBatch = 64
	// envTimeout bounds how long that takes. It takes milliseconds, or for ever.
	envTimeout = 5 * time.Second
)

// environment finds processes with so many environment variables that starting a
// child fails (mostly of Kubernetes' own making: seven for each service in the
// namespace, see enableServiceLinks).
//
// Reading an environment takes the memory lock of the process, which may be held for
// ever: a child does it. It is asked once in the life of a process, and only about
// those whose environment, by its size, may hold so many.
type environment struct {
	check.Info
	opts Options
	// known are the processes that were counted; -1 for one that cannot be.
	known map[process]int
	count func(ctx context.Context, h *host.Host, pids []int) (map[int]int, error)
}

// process names a process for good.
type process struct {
	pid   int
	start uint64
}

func newEnvironment(o Options) *environment {
	return &environment{
		Info: info("environment", 5*time.Minute, "LargeEnvironment"), opts: o,
		known: map[process]int{}, count: countVariables,
	}
}

// Run implements check.Check.
func (c *environment) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	maxAge := c.Every
	if c.opts.Fresh {
		maxAge = 0
	}
	t, err := c.opts.Processes.Table(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	known, ask := map[process]int{}, []proc.Stat{}
	for _, p := range t.Processes {
		if p.EnvSize <= envSmall {
			continue
		}
		id := process{p.PID, p.Start}
		if n, ok := c.known[id]; ok {
			known[id] = n
		} else if len(ask) < envBatch {
			ask = append(ask, p)
		}
	}
	c.known = known
	if len(ask) > 0 {
		if err := c.ask(ctx, h, ask); err != nil {
			return nil, err
		}
	}
	return checkEnvironments(c.opts, t.Processes, known), nil
}

// ask counts the variables of processes that are not known yet.
func (c *environment) ask(ctx context.Context, h *host.Host, ps []proc.Stat) error {
	pids := make([]int, len(ps))
	for i, p := range ps {
		pids[i] = p.PID
	}
	counts, err := c.count(ctx, h, pids)
	for _, p := range ps {
		n, ok := counts[p.PID]
		if ok {
			c.known[process{p.PID, p.Start}] = n
			continue
		}
		if err != nil && !errors.Is(err, host.ErrAbsent) {
			// The first without an answer is the one that it hangs at. The rest are asked
			// about the next time.
			c.known[process{p.PID, p.Start}] = -1
			break
		}
	}
	if errors.Is(err, host.ErrAbsent) {
		return err
	}
	return nil
}

// countVariables asks grep for the number of NUL-terminated strings in each.
func countVariables(ctx context.Context, h *host.Host, pids []int) (map[int]int, error) {
	argv := []string{"grep", "--line-buffered", "-zac", ""}
	for _, pid := range pids {
		argv = append(argv, fmt.Sprintf("/proc/%d/environ", pid))
	}
	argv = append(argv, "/dev/null") // names are printed even before a single file
	var out bytes.Buffer
	r, err := h.Run(ctx, host.Command{Argv: argv, Stdout: &out, Timeout: envTimeout})
	if r.ExitCode == 1 || r.ExitCode == 2 {
		err = nil // nothing counted, or a process that has ended meanwhile
	}
	return parseCounts(out.String()), err
}

// parseCounts parses lines such as "/proc/1/environ:12".
func parseCounts(s string) map[int]int {
	counts := map[int]int{}
	for line := range strings.Lines(s) {
		name, count, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		pid, err1 := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(name, "/proc/"), "/environ"))
		n, err2 := strconv.Atoi(count)
		if err1 == nil && err2 == nil {
			counts[pid] = n
		}
	}
	return counts
}

// checkEnvironments makes one finding for each program, not for each process.
func checkEnvironments(o Options, ps []proc.Stat, counts map[process]int) []health.Finding {
	var fs []health.Finding
	seen := map[string]bool{}
	for _, p := range ps {
		n := counts[process{p.PID, p.Start}]
		if n <= envLimit || seen[p.Comm] {
			continue
		}
		seen[p.Comm] = true
		f := check.Finding(o.Catalog, "LargeEnvironment", p.Comm,
			fmt.Sprintf("%s has more than %d environment variables, which slows down and can stop the start of its children. In a pod, set enableServiceLinks: false.", p.Comm, envLimit))
		f.Evidence = fmt.Sprintf("%s[%d] has %d variables in %d bytes", p.Comm, p.PID, n, p.EnvSize)
		f.Fields = map[string]any{"process": p.Comm, "pid": int64(p.PID), "variables": int64(n)}
		fs = append(fs, f)
	}
	return fs
}
