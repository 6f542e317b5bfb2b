package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	health "github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/board"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/cluster"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

const (
	// redrawEvery bounds how often a screen is drawn, redrawIdle how long it may stay
	// as it is: ages grow.
	redrawEvery = time.Second
	redrawIdle  = time.Second
)

// start has a board told of the nodes and Events that o asks for, until ctx ends.
func start(ctx context.Context, c *cluster.Cluster, o *Options) *board.Board {
	b := board.New(o.policy, o.Warnings)
	go c.Follow(ctx, o.Selector, o.keep(), b)
	if o.Warnings > 0 {
		go c.FollowEvents(ctx, health.NewCatalog(), b)
	}
	return b
}

// follow shows the nodes and their changes until ctx ends: on a terminal by drawing
// over, else with a line for each node whose line has changed.
func follow(ctx context.Context, sh *shell, c *cluster.Cluster, o *Options) error {
	out, errOut, err := sh.screens()
	if err != nil {
		return err
	}
	// What would never come is told at once: no contact, no right.
	if err := c.Reachable(ctx); err != nil {
		return err
	}
	b := start(ctx, c, o)
	f := &following{out: out, errOut: errOut, c: c, o: o, b: b, last: map[string]string{}}
	if out.Live() {
		f.live = term.NewLive(out)
	}
	ctx, stop := context.WithCancelCause(ctx)
	b.Throttle(ctx.Done(), redrawEvery, redrawIdle, func() {
		if err := f.draw(); err != nil {
			stop(err)
		}
	})
	if err := context.Cause(ctx); !errors.Is(err, errInterrupted) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

type following struct {
	out, errOut *term.Stream
	live        *term.Live
	c           *cluster.Cluster
	o           *Options
	b           *board.Board
	last        map[string]string
	contact     string
	begun       bool
}

func (f *following) draw() error {
	s := f.b.At(f.c.Now())
	if !s.Synced {
		return nil
	}
	rows := named(s.Rows, f.o.Nodes)
	width, height := f.out.Size()
	if f.live != nil {
		lines := f.notes(s)
		// Only what is seen is laid out.
		shown := chosen(rows, f.o)
		shown = shown[:min(len(shown), max(1, height))]
		return f.live.Draw(append(lines, tableLines(f.out, rows, shown, s.View, f.o, width)...))
	}
	for _, n := range f.notes(s) {
		if n != f.contact {
			fmt.Fprintln(f.errOut, n)
		}
		f.contact = n
	}
	return f.append(rows, s.View, width)
}

// append prints the whole table at first, and then the lines that have changed in
// more than their ages.
func (f *following) append(rows []*fleet.Row, view fleet.View, width int) error {
	var changed []*fleet.Row
	for _, r := range rows {
		if k := fingerprint(r); f.last[r.Name] != k {
			f.last[r.Name] = k
			changed = append(changed, r)
		}
	}
	if f.begun && len(changed) == 0 {
		return nil
	}
	o := *f.o
	if f.begun {
		o.NoHeaders, o.GroupBy = true, ""
	}
	f.begun = true
	return printLines(f.out, tableLines(f.out, rows, chosen(changed, &o), view, &o, width))
}

func (f *following) notes(s board.State) []string {
	var out []string
	if s.Contact != nil {
		out = append(out, f.errOut.Paint(term.Warn, "no word from the API server: "+firstLine(s.Contact)))
	}
	if s.EventError != nil {
		out = append(out, f.errOut.Paint(term.Dim, "note: "+firstLine(s.EventError)+" (no Events)"))
	}
	return out
}

// fingerprint is all of a row's words that do not change with time alone.
func fingerprint(r *fleet.Row) string {
	var b strings.Builder
	fmt.Fprint(&b, r.Verdict, r.Reason, r.Repair.State, r.Repair.At.Unix(), r.GPUs, r.Agent, len(r.Warnings))
	for _, c := range r.Cells {
		fmt.Fprint(&b, c.State, c.Reason)
	}
	return b.String()
}

// named are the rows of those names; without names all of them.
func named(rows []*fleet.Row, names []string) []*fleet.Row {
	if len(names) == 0 {
		return rows
	}
	var out []*fleet.Row
	for _, r := range rows {
		for _, name := range names {
			if r.Name == name {
				out = append(out, r)
			}
		}
	}
	return out
}
