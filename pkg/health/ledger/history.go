package ledger

import (
	"slices"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

// remember puts the incident into the history.
func (l *Ledger) remember(e *Entry, now time.Time, how string) {
	in := e.incident()
	to := seconds(now)
	if how == "" || e.judgment.rule.Kind == ClearEvent {
		to = e.Last
	}
	in.To, in.Ended = &to, how
	l.state.Incidents = slices.Insert(l.state.Incidents, 0, in)
	if len(l.state.Incidents) > annotation.MaxIncidents {
		l.state.Incidents = l.state.Incidents[:annotation.MaxIncidents]
	}
	l.dirty = true
}

func (e *Entry) incident() annotation.Incident {
	return annotation.Incident{
		Reason: e.Reason, Severity: string(e.judgment.severity), Condition: string(e.Condition), Subject: e.Subject,
		From: e.First, Last: e.Last, Count: e.Count,
	}
}

const (
	maxRelapses  = 64
	relapseAfter = 30 * 24 * time.Hour
)

// relapse is a fault that a reboot ended. When it comes back it is the same fault.
type relapse struct {
	Condition health.ConditionType `json:"condition,omitempty"`
	Reason    string               `json:"reason"`
	Subject   string               `json:"subject,omitempty"`
	Reboots   int                  `json:"reboots"`
	At        time.Time            `json:"at"`
}

// relapsed notes that a reboot ended the fault.
func (s *state) relapsed(e *Entry, now time.Time) {
	s.Relapses = slices.DeleteFunc(s.Relapses, func(r relapse) bool {
		return e.is(r.Condition, r.Reason, r.Subject) || now.Sub(r.At) > relapseAfter
	})
	s.Relapses = append(s.Relapses, relapse{e.Condition, e.Reason, e.Subject, e.Reboots + 1, now})
	if n := len(s.Relapses) - maxRelapses; n > 0 {
		s.Relapses = slices.Delete(s.Relapses, 0, n)
	}
}

// relapses returns how many reboots the fault came back after.
func (s *state) relapses(e *Entry) int {
	for _, r := range s.Relapses {
		if e.is(r.Condition, r.Reason, r.Subject) {
			return r.Reboots
		}
	}
	return 0
}

// forgive forgets that the fault ever came back: a person says that it is repaired.
func (s *state) forgive(e *Entry) {
	s.Relapses = slices.DeleteFunc(s.Relapses, func(r relapse) bool { return e.is(r.Condition, r.Reason, r.Subject) })
}
