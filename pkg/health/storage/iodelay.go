package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

const (
	// delayLimit is how long a process may wait for block I/O between two samples, in
	// clock ticks: 10 s. The kernel's tick for user space is 1/100 s everywhere.
	delayLimit = 1000
	// delayProcesses bounds the findings of one run.
	delayProcesses = 5
)

// ioDelays finds processes that wait long for their disks.
type ioDelays struct {
	check.Info
	opts Options
	last map[process]uint64
	once sync.Once
}

// process names a process for good.
type process struct {
	pid   int
	start uint64
}

func newIODelays(o Options) *ioDelays {
	return &ioDelays{Info: info("io-delays", 10*time.Minute, "IODelays"), opts: o}
}

// Run implements check.Check. A kernel that does not count is not one on which nobody
// waits.
func (c *ioDelays) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	if on, err := h.ReadString("/proc/sys/kernel/task_delayacct"); err == nil && on == "0" {
		c.once.Do(func() {
			c.opts.Log.Info("nobody counts how long processes wait for disks; set kernel.task_delayacct=1 to have IODelays found")
		})
		c.last = nil
		return nil, fmt.Errorf("kernel.task_delayacct is 0: %w", check.ErrNoData)
	}
	t, err := c.opts.Processes.Table(ctx, time.Minute)
	if err != nil {
		return nil, err
	}
	var fs []health.Finding
	c.last, fs = checkIODelays(c.opts, c.last, t.Processes)
	return fs, nil
}

// checkIODelays compares with the last sample. A process that was not in it is not
// judged, nor is one whose count fell.
func checkIODelays(o Options, last map[process]uint64, ps []proc.Stat) (map[process]uint64, []health.Finding) {
	now := make(map[process]uint64, len(ps))
	type late struct {
		name  string
		pid   int
		ticks uint64
	}
	worst := map[string]late{}
	for _, p := range ps {
		id := process{p.PID, p.Start}
		now[id] = p.BlockWait
		before, ok := last[id]
		if !ok || p.BlockWait < before || p.BlockWait-before <= delayLimit {
			continue
		}
		if d := p.BlockWait - before; d > worst[p.Comm].ticks {
			worst[p.Comm] = late{p.Comm, p.PID, d}
		}
	}
	var list []late
	for _, l := range worst {
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b late) int {
		return cmp.Or(cmp.Compare(b.ticks, a.ticks), cmp.Compare(a.name, b.name))
	})
	var out []health.Finding
	for _, l := range list[:min(len(list), delayProcesses)] {
		f := check.Finding(o.Catalog, "IODelays", l.name, fmt.Sprintf("%s waited more than 10 seconds for its disk since the last sample.", l.name))
		f.Evidence = fmt.Sprintf("%s[%d] waited %d.%02d s for block I/O", l.name, l.pid, l.ticks/100, l.ticks%100)
		f.Fields = map[string]any{"process": l.name, "pid": int64(l.pid), "delay_ms": int64(l.ticks) * 10}
		out = append(out, f)
	}
	return now, out
}
