package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

const (
	// stuckSamples is in how many samples a task must be found waiting.
	stuckSamples = 5
	// idleLoad is a load average that a node cannot have on which a task has waited in
	// state D for minutes: such a task counts as 1.
	idleLoad = 0.5
	// scanShare is how many times as long as a search through all threads took the next
	// one waits. A search rests for nine tenths of its time (package proc), so that is a
	// thousandth of a core.
	scanShare = 100
)

// stuck finds tasks that wait in the kernel and cannot be interrupted: on a device, a
// dead NFS server, a lock. Looking through all threads takes long on a big node: it is
// done seldom there, and every minute for those only that were found waiting.
type stuck struct {
	check.Info
	opts Options
	last map[process]waiting
	scan time.Time // when to look through all threads again
}

// waiting is a task in state D.
type waiting struct {
	comm    string
	pid     int // of the process
	wchan   string
	slices  string // how often it ran: "" when unknown
	samples int
}

func newStuck(o Options) *stuck {
	return &stuck{Info: info("stuck-tasks", time.Minute, "TaskStuckInD"), opts: o}
}

// Run implements check.Check.
func (c *stuck) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	load, err := proc.ReadLoad(h)
	if err != nil {
		return nil, err
	}
	now := map[process]waiting{}
	start := time.Now()
	switch {
	case load.Avg1 < idleLoad:
	case start.Before(c.scan):
		for id, w := range c.last {
			t, err := proc.ReadThread(h, w.pid, id.pid)
			if err == nil && t.State == 'D' && t.Start == id.start {
				now[id] = readWaiting(h, w.pid, t)
			}
		}
	default:
		err := proc.WalkThreads(ctx, h, func(pid int, t proc.Stat) {
			if t.State == 'D' {
				now[process{t.PID, t.Start}] = readWaiting(h, pid, t)
			}
		})
		if err != nil {
			return nil, err
		}
		c.scan = time.Now().Add(scanShare * time.Since(start))
	}
	var fs []health.Finding
	c.last, fs = checkStuck(c.opts, c.last, now)
	return fs, nil
}

func readWaiting(h *host.Host, pid int, t proc.Stat) waiting {
	dir := fmt.Sprintf("/proc/%d/task/%d", pid, t.PID)
	w := waiting{comm: t.Comm, pid: pid}
	w.wchan, _ = h.ReadString(dir + "/wchan")
	if s, err := h.ReadString(dir + "/schedstat"); err == nil {
		w.slices = s[strings.LastIndexByte(s, ' ')+1:]
	}
	return w
}

// checkStuck counts in how many samples in a row a task has waited without running
// in between: one that does much I/O is found in state D again and again, too.
func checkStuck(o Options, last, now map[process]waiting) (map[process]waiting, []health.Finding) {
	bySubject := map[string][]waiting{}
	for id, w := range now {
		w.samples = 1
		if before, ok := last[id]; ok && before.slices == w.slices {
			w.samples = before.samples + 1
		}
		now[id] = w
		if w.samples >= stuckSamples {
			bySubject[program(w.comm)] = append(bySubject[program(w.comm)], w)
		}
	}
	var fs []health.Finding
	for subject, ws := range bySubject {
		slices.SortFunc(ws, func(a, b waiting) int { return a.pid - b.pid })
		f := check.Finding(o.Catalog, "TaskStuckInD", subject,
			fmt.Sprintf("%s waits in the kernel and cannot be killed (state D), not having run for %d samples in a row.", subject, stuckSamples))
		var tasks []string
		for _, w := range ws[:min(len(ws), 5)] {
			tasks = append(tasks, fmt.Sprintf("%s[%d] in %s", w.comm, w.pid, w.wchan))
		}
		f.Evidence = fmt.Sprintf("%d tasks: %s", len(ws), strings.Join(tasks, ", "))
		f.Fields = map[string]any{"process": ws[0].comm, "pid": int64(ws[0].pid), "wchan": ws[0].wchan, "tasks": int64(len(ws))}
		fs = append(fs, f)
	}
	slices.SortFunc(fs, func(a, b health.Finding) int { return strings.Compare(a.Subject, b.Subject) })
	return now, fs
}

// program is a name that stays while the kernel's workers change theirs
// ("kworker/u8:3+flush-259:0").
func program(comm string) string {
	if name, _, ok := strings.Cut(comm, "/"); ok && name == "kworker" {
		return name
	}
	return comm
}
