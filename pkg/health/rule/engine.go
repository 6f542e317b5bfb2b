package rule

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Engine runs rules over records. It is a detect.Detector, for one goroutine at a
// time. A record makes at most one finding: that of the rule with the highest rank
// among those that match, the earlier in the list among equals.
type Engine struct {
	kernel, journal, file *group
	all                   []*compiled
	windows               windows
}

// group is all rules of one source, with one prefilter.
type group struct {
	rules     []*compiled
	prefilter *Prefilter
	set       Set
}

func newEngine(rules []*compiled) *Engine {
	e := &Engine{all: rules, windows: windows{}}
	e.kernel = newGroup(rules, host.SourceKmsg)
	e.journal = newGroup(rules, host.SourceJournal)
	e.file = newGroup(rules, host.SourceFile)
	return e
}

func newGroup(rules []*compiled, source host.Source) *group {
	g := &group{}
	var literals [][]string
	for _, c := range rules {
		if c.Source == source {
			g.rules = append(g.rules, c)
			literals = append(literals, c.literals)
		}
	}
	g.prefilter = NewPrefilter(literals)
	g.set = make(Set, g.prefilter.Words())
	return g
}

// groups returns the groups that a record belongs to: of a record of a saved journal
// that may be the kernel's or any unit's, more than one.
func (e *Engine) groups(r host.Record) []*group {
	switch {
	case r.Kernel && r.Unit == AnyUnit:
		return []*group{e.kernel, e.journal}
	case r.Kernel || r.Source == host.SourceKmsg:
		return []*group{e.kernel}
	case r.Source == host.SourceJournal:
		return []*group{e.journal}
	case r.Source == host.SourceFile:
		return []*group{e.file}
	}
	return nil
}

// Rules returns the rules, with what was derived filled in (literals, severity). The
// slice is the caller's.
func (e *Engine) Rules() []Rule {
	out := make([]Rule, 0, len(e.all))
	for _, c := range e.all {
		r := c.Rule
		r.Literals, r.Severity = c.literals, c.severity
		out = append(out, r)
	}
	return out
}

// Detect implements detect.Detector.
func (e *Engine) Detect(r host.Record) []health.Finding {
	c, fields := e.winner(r)
	if c == nil {
		return nil
	}
	f := c.finding(r, fields)
	if c.Window == nil {
		return []health.Finding{f}
	}
	if !e.windows.add(c, f, clockOf(r)) {
		return nil
	}
	return []health.Finding{f}
}

// Due implements detect.Detector. Windows count; they hold nothing back.
func (e *Engine) Due() time.Time { return time.Time{} }

// Flush implements detect.Detector.
func (e *Engine) Flush(now time.Time) []health.Finding {
	if !now.IsZero() {
		return nil
	}
	return e.windows.end()
}

// winner returns the rule that reports a record, and the fields it takes.
func (e *Engine) winner(r host.Record) (*compiled, map[string]any) {
	var best *compiled
	var bestFields map[string]any
	for _, g := range e.groups(r) {
		clear(g.set)
		if !g.prefilter.Find(r.Message, g.set) {
			continue
		}
		for i, c := range g.rules {
			if !g.set.Has(i) || best != nil && best.Rank >= c.Rank || !c.takes(r) {
				continue
			}
			if fields, ok := c.match(r.Message); ok {
				best, bestFields = c, fields
			}
		}
	}
	return best, bestFields
}

func (c *compiled) finding(r host.Record, fields map[string]any) health.Finding {
	return health.Finding{
		Reason:    c.Reason,
		Severity:  c.severity,
		Condition: c.condition,
		Subject:   c.subject.expand(fields),
		Message:   c.message.expand(fields),
		Fields:    fields,
		At:        r.At,
		Boot:      r.Boot,
		Position:  r.Position,
	}
}

// clockOf is detect.Clock, which this package cannot import.
func clockOf(r host.Record) time.Time {
	if r.At.IsZero() && r.Monotonic != 0 {
		return time.Unix(0, 0).UTC().Add(r.Monotonic)
	}
	return r.At
}
