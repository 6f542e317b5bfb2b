package kernel

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

// pidUsage finds a node that runs out of process ids. Every thread takes one.
type pidUsage struct {
	check.Info
	opts Options
}

func newPIDUsage(o Options) *pidUsage {
	return &pidUsage{info("pid-usage", 5*time.Minute, "ApproachingKernelPidMax"), o}
}

// pids are the threads of the node and what bounds them.
type pids struct {
	threads, pidMax, threadsMax int64
}

// limit is the lower bound, and the name of the setting.
func (p pids) limit() (int64, string) {
	if p.threadsMax < p.pidMax {
		return p.threadsMax, "kernel.threads-max"
	}
	return p.pidMax, "kernel.pid_max"
}

// above says whether the share of ids in use is at least limit.
func (p pids) above(limit float64) bool {
	n, _ := p.limit()
	return n > 0 && float64(p.threads) >= limit*float64(n)
}

func readPIDs(h *host.Host) (p pids, err error) {
	load, err := proc.ReadLoad(h)
	if err != nil {
		return p, err
	}
	p.threads = int64(load.Threads)
	if p.pidMax, err = readNumber(h, "/proc/sys/kernel/pid_max"); err != nil {
		return p, err
	}
	p.threadsMax, err = readNumber(h, "/proc/sys/kernel/threads-max")
	return p, err
}

func readNumber(h *host.Host, path string) (int64, error) {
	s, err := h.ReadString(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}

// Run implements check.Check.
func (c *pidUsage) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	p, err := readPIDs(h)
	if err != nil {
		return nil, err
	}
	return checkPIDs(c.opts, p), nil
}

func checkPIDs(o Options, p pids) []health.Finding {
	if !p.above(o.UsageLimit) {
		return nil
	}
	limit, name := p.limit()
	f := check.Finding(o.Catalog, "ApproachingKernelPidMax", "",
		fmt.Sprintf("The node's threads take %.0f%% or more of the process ids that %s=%d allows; at the limit nothing can be started.", 100*o.UsageLimit, name, limit))
	f.Evidence = fmt.Sprintf("%d threads, %s=%d", p.threads, name, limit)
	f.Fields = map[string]any{"threads": p.threads, "limit": limit, "setting": name}
	return []health.Finding{f}
}
