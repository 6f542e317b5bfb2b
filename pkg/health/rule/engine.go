package rule

import (
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// maxEvidence bounds the part of a record that a finding shows, in bytes.
const maxEvidence = 1024

// Engine runs rules over records. It is a detect.Detector, for one goroutine at a
// time. A record makes at most one finding: that of the rule with the highest rank
// among those that match, the earlier in the list among equals.
type Engine struct {
	kernel, journal, file *group
	all                   []*compiled
	windows               windows
	// last is the time of the last record that had one.
	last time.Time
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

// Clone returns an engine with the same rules that has seen nothing. Detect of one does
// not bear on the other; they may be used by different goroutines.
func (e *Engine) Clone() *Engine {
	group := func(g *group) *group {
		c := *g
		c.set = make(Set, g.prefilter.Words())
		return &c
	}
	return &Engine{all: e.all, windows: windows{}, kernel: group(e.kernel), journal: group(e.journal), file: group(e.file)}
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

// groups returns the one or two groups that a record belongs to: two for a record of
// a saved journal that may be the kernel's or any unit's.
func (e *Engine) groups(r *host.Record) [2]*group {
	switch {
	case r.Kernel && r.Unit == AnyUnit:
		return [2]*group{e.kernel, e.journal}
	case r.Kernel || r.Source == host.SourceKmsg:
		return [2]*group{e.kernel}
	case r.Source == host.SourceJournal:
		return [2]*group{e.journal}
	case r.Source == host.SourceFile:
		return [2]*group{e.file}
	}
	return [2]*group{}
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
	if at := clockOf(r); !at.IsZero() {
		e.last = at
	}
	c, fields := e.winner(&r)
	if c == nil {
		return nil
	}
	f := c.finding(r, fields)
	if c.Window == nil {
		return []health.Finding{f}
	}
	if !e.windows.add(c, f, e.last) {
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
	return e.windows.end(e.last)
}

// winner returns the rule that reports a record, and the fields it takes.
func (e *Engine) winner(r *host.Record) (*compiled, map[string]any) {
	var best *compiled
	var bestFields map[string]any
	for _, g := range e.groups(r) {
		if g == nil {
			break
		}
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
	origin := health.OriginService
	switch {
	case c.Source == host.SourceKmsg && r.Kernel:
		origin = health.OriginKernel
	case c.Source == host.SourceKmsg:
		origin = health.OriginUserspace
	}
	return health.Finding{
		Origin:    origin,
		Reason:    c.Reason,
		Severity:  c.severity,
		Condition: c.condition,
		Subject:   c.subject.expand(fields),
		Message:   c.message.expand(fields),
		Fields:    fields,
		At:        r.At,
		Boot:      r.Boot,
		Position:  r.Position,
		Evidence:  strings.Clone(r.Message[:min(len(r.Message), maxEvidence)]),
	}
}

// clockOf is detect.Clock, which this package cannot import.
func clockOf(r host.Record) time.Time {
	if r.At.IsZero() && r.Monotonic != 0 {
		return time.Unix(0, 0).UTC().Add(r.Monotonic)
	}
	return r.At
}
