package fleet

import (
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// Warning is what is wrong with a node without having turned a condition.
type Warning struct {
	Reason, Message string
	First, Last     time.Time
	Count           int
	// Active says that the agent sees it now.
	Active bool
}

// warnings are those that are active, or were seen after since: one for each reason,
// the newest first. What is over by the all-clear of its own counts as well: it was.
func warnings(f *Facts, events []Occurrence, since time.Time) []Warning {
	if len(events) == 0 && f.Health == nil {
		return nil
	}
	byReason := map[string]*Warning{}
	add := func(w Warning) {
		have, ok := byReason[w.Reason]
		if !ok {
			byReason[w.Reason] = &w
			return
		}
		have.Active = have.Active || w.Active
		have.Count = max(have.Count, w.Count)
		if w.First.Before(have.First) {
			have.First = w.First
		}
		if w.Last.After(have.Last) {
			have.Last = w.Last
		}
		if have.Message == "" {
			have.Message = w.Message
		}
	}
	if f.Health != nil {
		for _, n := range f.Health.Findings {
			if n.Severity == string(health.Warning) || n.Shadow {
				add(Warning{Reason: n.Reason, Message: n.Evidence, First: n.Since, Last: n.Since, Count: 1, Active: true})
			}
		}
	}
	for _, list := range [][]Occurrence{f.Incidents(), events} {
		for _, o := range list {
			if o.Severity == string(health.Warning) && o.Last.After(since) && !sickWith(f, o.Reason) {
				add(Warning{Reason: o.Reason, Message: o.Message, First: o.First, Last: o.Last, Count: o.Count})
			}
		}
	}
	out := make([]Warning, 0, len(byReason))
	for _, w := range byReason {
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b Warning) int {
		if c := b.Last.Compare(a.Last); c != 0 {
			return c
		}
		return strings.Compare(a.Reason, b.Reason)
	})
	return out
}

// sickWith reports whether a condition is False for that reason: its Event is a
// Warning as well, and would be told twice.
func sickWith(f *Facts, reason string) bool {
	return slices.ContainsFunc(f.Conditions, func(c Condition) bool {
		return c.Status == "False" && c.Reason == reason && columnOf(c.Type) >= 0
	})
}
