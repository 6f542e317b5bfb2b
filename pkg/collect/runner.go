package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
	"github.com/ekslogs/ekslogs/pkg/collect/redact"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// hangGrace is longer than what host.Run needs to give a child up.
const hangGrace = 4 * time.Second

// errTotalTime ends what is running when the capture's own time is over.
var errTotalTime = errors.New("the capture's total time was over")

// runner runs the entries of a table, side by side, and hands each item on.
type runner struct {
	env     *env
	red     *redact.Redactor
	space   *space
	target  *target
	results chan<- result
	// left is what the bundle may still hold, in bytes. The one who writes the
	// archive counts it down.
	left *atomic.Int64
	// grace is how long a source may take to notice that its time is over.
	grace     time.Duration
	abandoned atomic.Int64
}

// result is one item, or the news that an entry is done.
type result struct {
	item  bundle.Item
	spool *spool // nil when there is nothing for the archive
	done  string // the entry's path
}

// run runs all entries and returns when every one has ended or was abandoned.
func (r *runner) run(ctx context.Context, table []entry) {
	var queues [lanes]chan entry
	var wg sync.WaitGroup
	for l := range queues {
		queues[l] = make(chan entry, len(table))
		for range laneWidth[l] {
			wg.Go(func() {
				for n := range queues[l] {
					r.entry(ctx, n)
					r.results <- result{done: n.path}
				}
			})
		}
	}
	for _, n := range table {
		queues[n.lane] <- n
	}
	for l := range queues {
		close(queues[l])
	}
	wg.Wait()
}

func (r *runner) entry(ctx context.Context, n entry) {
	if n.on != nil && !n.on.ok(r.env) {
		r.report(n, nil, time.Now(), absent("only on %s", n.on.name))
		return
	}
	if n.expand == nil {
		r.item(ctx, n)
		return
	}
	start := time.Now()
	got := make(chan []entry, 1)
	err := r.bounded(ctx, n, func(ctx context.Context) error {
		more, err := n.expand(ctx, r.env)
		got <- more
		return err
	})
	var more []entry
	select {
	case more = <-got:
	default: // abandoned
	}
	for _, m := range more {
		r.item(ctx, n.heir(m))
	}
	if err != nil {
		r.report(n, nil, start, err)
	}
}

// item collects one item.
func (r *runner) item(ctx context.Context, n entry) {
	start := time.Now()
	if err := ctx.Err(); err != nil {
		r.report(n, nil, start, fmt.Errorf("not collected: %w", context.Cause(ctx)))
		return
	}
	limit := n.bytes
	if limit == 0 {
		limit = defaultBytes
	}
	left := r.left.Load()
	if left <= 0 {
		r.report(n, nil, start, errBudget)
		return
	}
	out := newSink(r.red, min(limit, left), r.space, r.target.scratch)
	err := r.bounded(ctx, n, func(ctx context.Context) error { return n.src.fetch(ctx, r.env, out) })
	err = errors.Join(err, out.close())
	r.report(n, out, start, err)
}

// errBudget is the cause of what is left out because the bundle is full.
var errBudget = errors.New("left out: the bundle has reached its bound")

// bounded runs f with the entry's time. An f that does not come back is left to
// itself and counted.
func (r *runner) bounded(ctx context.Context, n entry, f func(context.Context) error) error {
	timeout := n.timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("defect of the collector: %v", p)
			}
		}()
		done <- f(ctx)
	}()
	select {
	case err := <-done:
		return r.counted(err)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return r.counted(err)
	case <-time.After(r.grace):
		r.abandoned.Add(1)
		return fmt.Errorf("did not end after %s: %w", timeout, host.ErrAbandoned)
	}
}

func (r *runner) counted(err error) error {
	if errors.Is(err, host.ErrAbandoned) {
		r.abandoned.Add(1)
	}
	return err
}

// report hands an item on.
func (r *runner) report(n entry, out *sink, start time.Time, err error) {
	it := bundle.Item{
		Path: safePath(n.path), Category: string(n.category), Source: n.kind,
		Start: start.UTC().Truncate(time.Millisecond), MS: time.Since(start).Milliseconds(),
	}
	if n.src != nil {
		it.Source = n.src.kind()
	}
	res := result{}
	if out != nil {
		it.From, it.Exit, it.Binary, it.Truncated = out.from, out.exit, out.binary, out.cut
		for _, a := range out.argv {
			a, _ = r.red.String(a)
			it.Argv = append(it.Argv, a)
		}
		it.Source = cmp.Or(out.kind, it.Source)
		it.Redactions = out.redactions()
		res.spool = out.spool
	}
	classify(&it, res.spool, err)
	if err != nil {
		text, _ := r.red.String(err.Error())
		it.Error = oneLine(strings.ReplaceAll(strings.TrimSpace(text), "\n", "; "))
	} else if it.Truncated {
		it.Error = "over its bound: the middle was left out"
	}
	if it.Status == bundle.StatusAbsent || res.spool != nil && res.spool.n == 0 && it.Status == bundle.StatusFailed {
		if res.spool != nil {
			res.spool.discard()
			res.spool = nil
		}
	}
	res.item = it
	r.results <- res
}

// classify says how the collection ended.
func classify(it *bundle.Item, s *spool, err error) {
	if s != nil && s.truncated() {
		it.Truncated = true
	}
	switch {
	case isAbsent(err):
		it.Status = bundle.StatusAbsent
	case err != nil:
		it.Status = bundle.StatusFailed
	case s == nil || s.n == 0:
		it.Status = bundle.StatusEmpty
	default:
		it.Status = bundle.StatusOK
	}
}
