package detect

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/incident"
	"github.com/ekslogs/ekslogs/pkg/health/rule"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// gate puts one prefilter for each source before the detectors of package incident, so
// that an ordinary line costs one pass over its bytes, however many there are.
type gate struct {
	detectors []incident.Detector
	by        map[host.Source]*entrance
	due       time.Time
}

// entrance is the detectors that want lines of one source, by index.
type entrance struct {
	members   []int
	prefilter *rule.Prefilter
	set       rule.Set
}

func newGate(detectors []incident.Detector) *gate {
	g := &gate{detectors: detectors, by: map[host.Source]*entrance{}}
	for _, source := range []host.Source{host.SourceKmsg, host.SourceJournal, host.SourceFile} {
		e := &entrance{}
		var literals [][]string
		for i, d := range detectors {
			for _, s := range d.Sources() {
				if s == source {
					e.members = append(e.members, i)
					literals = append(literals, d.Literals())
				}
			}
		}
		e.prefilter = rule.NewPrefilter(literals)
		e.set = make(rule.Set, e.prefilter.Words())
		g.by[source] = e
	}
	return g
}

// Detect implements Detector.
func (g *gate) Detect(r host.Record) []health.Finding {
	source := r.Source
	if r.Kernel {
		source = host.SourceKmsg
	}
	out := g.enter(source, r)
	if r.Kernel && r.Unit == rule.AnyUnit {
		r.Kernel = false // if a unit's words are in it, the unit wrote it
		out = append(out, g.enter(host.SourceJournal, r)...)
	}
	return out
}

func (g *gate) enter(source host.Source, r host.Record) []health.Finding {
	e := g.by[source]
	if e == nil {
		return nil
	}
	clear(e.set)
	if !e.prefilter.Find(r.Message, e.set) {
		return nil
	}
	var out []health.Finding
	for i, m := range e.members {
		if e.set.Has(i) {
			out = append(out, g.detectors[m].Detect(r)...)
		}
	}
	g.due = g.earliest()
	return out
}

// Due implements Detector.
func (g *gate) Due() time.Time { return g.due }

func (g *gate) earliest() time.Time {
	var due time.Time
	for _, d := range g.detectors {
		due = earlier(due, d.Due())
	}
	return due
}

// Flush implements Detector.
func (g *gate) Flush(now time.Time) []health.Finding {
	var out []health.Finding
	for _, d := range g.detectors {
		out = append(out, d.Flush(now)...)
	}
	g.due = g.earliest()
	return out
}

// earlier returns the earlier of two times of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
