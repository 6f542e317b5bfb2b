package monitor

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

const (
	// checkTimeout is how long a run may take; hungAfter is how long it is waited for
	// before the scheduler goes on without it.
	checkTimeout = 20 * time.Second
	hungAfter    = 30 * time.Second
	// maxFirst bounds how long the first run waits, so that a node is judged soon
	// after the agent's start.
	maxFirst = 20 * time.Second
)

// job is a check and when it is due.
type job struct {
	check    check.Check
	interval time.Duration
	next     time.Time
	ran      bool
	done     chan result // not nil while a run hangs
}

type result struct {
	findings []health.Finding
	err      error
	took     time.Duration
}

// reporter takes the results of runs.
type reporter interface {
	checked(c check.Check, findings []health.Finding, took time.Duration, err error)
	firstRound()
}

// scheduler runs all checks, one after the other, in one goroutine with one timer.
type scheduler struct {
	host *host.Host
	log  *slog.Logger
	to   reporter
	jobs []*job

	timeout, hung time.Duration
}

// newScheduler plans the first runs: spread by the node's and the check's name, so
// that neither the checks of a node nor the nodes of a fleet run together. What has
// no jitter to lose, the loopback interface without which nothing on the node
// works, is looked at first.
func newScheduler(h *host.Host, node string, checks []check.Check, interval func(check.Check) time.Duration, to reporter, log *slog.Logger, now time.Time) *scheduler {
	s := &scheduler{host: h, log: log, to: to, timeout: checkTimeout, hung: hungAfter}
	for _, c := range checks {
		j := &job{check: c, interval: interval(c)}
		j.next = now.Add(jitter(node, c.Name(), min(j.interval/5, maxFirst)))
		if slices.Contains(c.Reasons(), "MissingLoopbackInterface") {
			j.next = now
		}
		s.jobs = append(s.jobs, j)
	}
	return s
}

// jitter is between 0 and limit, the same each time for the same names.
func jitter(node, name string, limit time.Duration) time.Duration {
	h := fnv.New64a()
	fmt.Fprint(h, node, "\x00", name)
	if limit <= 0 {
		return 0
	}
	return time.Duration(h.Sum64() % uint64(limit))
}

// run runs checks until ctx ends.
func (s *scheduler) run(ctx context.Context) {
	if len(s.jobs) == 0 {
		s.to.firstRound()
		return
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	told := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		for _, j := range s.jobs {
			if ctx.Err() == nil && !j.next.After(time.Now()) {
				s.runJob(ctx, j)
			}
		}
		if !told && !slices.ContainsFunc(s.jobs, func(j *job) bool { return !j.ran }) {
			told = true
			s.to.firstRound()
		}
		timer.Reset(s.wait(time.Now()))
	}
}

// wait is until the next job, rounded up to whole seconds so that jobs that are due
// about the same time share one waking.
func (s *scheduler) wait(now time.Time) time.Duration {
	next := slices.MinFunc(s.jobs, func(a, b *job) int { return a.next.Compare(b.next) }).next
	d := max(next.Sub(now), 0)
	return (d + time.Second - 1).Truncate(time.Second)
}

func (s *scheduler) runJob(ctx context.Context, j *job) {
	now := time.Now()
	j.next = now.Add(j.interval)
	if j.done == nil {
		done := make(chan result, 1)
		j.done = done
		go func() { done <- runOnce(ctx, s.host, j.check, s.timeout) }()
	}
	hung := time.NewTimer(s.hung)
	defer hung.Stop()
	j.ran = true
	select {
	case r := <-j.done:
		j.done = nil
		if ctx.Err() == nil {
			s.to.checked(j.check, r.findings, r.took, r.err)
		}
	case <-hung.C:
		// It is not started again while it hangs: hung runs must not pile up.
		s.log.Warn("a check hangs, it is left alone until it returns", "check", j.check.Name())
		s.to.checked(j.check, nil, time.Since(now), errors.New("the check does not return"))
	case <-ctx.Done():
	}
}

func runOnce(ctx context.Context, h *host.Host, c check.Check, timeout time.Duration) (r result) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			r = result{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
		}
		r.took = time.Since(start)
	}()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	findings, err := c.Run(ctx, h)
	return result{findings: findings, err: err}
}
