package kernel

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// forkRecovery finds nothing. It takes the samples that clear ForkFailedOutOfPIDs,
// which a rule finds in kubelet's log: process ids are there again, and processes
// have been started since the last sample, as the kernel's count of them tells
// without starting one.
type forkRecovery struct {
	check.Info
	opts Options
	last *int64
}

func newForkRecovery(o Options) *forkRecovery {
	return &forkRecovery{Info: info("fork-recovery", time.Minute, "ForkFailedOutOfPIDs"), opts: o}
}

// Run implements check.Check.
func (c *forkRecovery) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	p, err := readPIDs(h)
	if err != nil {
		return nil, err
	}
	stat, err := h.ReadFile("/proc/stat", 0)
	if err != nil {
		return nil, err
	}
	forks, err := parseForks(string(stat))
	if err != nil {
		return nil, err
	}
	last := c.last
	c.last = &forks
	if !recovered(c.opts, p, last, forks) {
		return nil, check.ErrNoData
	}
	return nil, nil
}

// recovered says whether this is a clean sample. The first is none, nor is one after
// the count fell.
func recovered(o Options, p pids, last *int64, forks int64) bool {
	return last != nil && forks > *last && !p.above(o.UsageLimit)
}

// parseForks finds the number of forks since boot in /proc/stat.
func parseForks(stat string) (int64, error) {
	for line := range strings.Lines(stat) {
		if n, ok := strings.CutPrefix(line, "processes "); ok {
			return strconv.ParseInt(strings.TrimSpace(n), 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/stat has no line of processes")
}
