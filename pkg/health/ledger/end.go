package ledger

import (
	"fmt"
	"slices"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// Sample is one run of a check that returned no error.
type Sample struct {
	// Check is the check's name.
	Check string
	// Reasons are the reasons of which the run is a sample, as the catalogue writes
	// them.
	Reasons []string
	// Findings are what is wrong now.
	Findings []health.Finding
}

// Sampled takes a run of a check: what it found is seen again, and what it covers
// and did not find had a clean sample. The outcomes are those of the findings.
func (l *Ledger) Sampled(s Sample) []Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	before := len(l.state.Outbox)
	moved := false
	outs := make([]Outcome, 0, len(s.Findings))
	for _, f := range s.Findings {
		out := l.observe(f, s.Check, now)
		moved = moved || out.New
		outs = append(outs, out)
	}
	for _, e := range slices.Clone(l.state.Entries) {
		if !l.cleanIn(e, s) {
			continue
		}
		if e.clean++; e.clean >= l.policy.cleanSamples() {
			l.end(e, now, "clean samples", true)
			moved = true
		}
	}
	switch {
	case moved || len(l.state.Outbox) != before:
		l.settle(now)
	case len(s.Findings) > 0:
		l.dirty = true
		l.notify()
	}
	return outs
}

// cleanIn reports whether the sample covers the entry and does not find it.
func (l *Ledger) cleanIn(e *Entry, s Sample) bool {
	if e.judgment.rule.Kind != ClearPoll || (e.Check != "" && e.Check != s.Check) {
		return false
	}
	code := e.Reason
	if row, ok := l.opts.Catalog.Lookup(e.Reason); ok {
		code = row.Code
	}
	if !slices.Contains(s.Reasons, code) && !slices.Contains(s.Reasons, e.Reason) {
		return false
	}
	return !slices.ContainsFunc(s.Findings, func(f health.Finding) bool {
		return !f.Clears && e.is(f.Condition, f.Reason, clean(f.Subject, maxSubject))
	})
}

// driverClears ends the faults that the driver itself takes back.
func (l *Ledger) driverClears(f health.Finding, now time.Time) {
	for _, e := range slices.Clone(l.state.Entries) {
		if e.Condition == f.Condition && e.Subject == f.Subject && e.judgment.rule.Driver {
			l.end(e, now, "driver", true)
		}
	}
}

// End ends the fault with that reason and subject, whatever its rule, because the
// one who found it says that it is over. It reports whether there was one.
func (l *Ledger) End(cond health.ConditionType, reason, subject, how string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.find(cond, reason, clean(subject, maxSubject))
	if e == nil {
		return false
	}
	now := l.now()
	l.end(e, now, how, true)
	l.settle(now)
	return true
}

// AllClear is a person's word that the fault with that reason is over, for one
// subject, or for all of them when subject is empty. It returns how many faults it
// ended; by says who said so and when.
func (l *Ledger) AllClear(reason, subject, by string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	n := 0
	for _, e := range slices.Clone(l.state.Entries) {
		if e.Reason == reason && (subject == "" || e.Subject == subject) {
			l.end(e, now, "all-clear by "+clean(by, maxSubject), true)
			l.state.forgive(e)
			n++
		}
	}
	if n > 0 {
		l.settle(now)
	}
	return n
}

// rebooted is called once at the start of a new boot. What a boot ends is over, and
// if it comes back, it is known to have come back. What needs clean samples is kept
// until it has them, unless nothing on this host takes any.
func (l *Ledger) rebooted() {
	now := l.now()
	for _, e := range slices.Clone(l.state.Entries) {
		switch {
		case e.judgment.rule.endsAtReboot():
			l.state.relapsed(e, now)
			l.end(e, now, "reboot", true)
		case e.judgment.rule.Kind == ClearEvent:
			l.end(e, now, "", false)
		}
	}
	for cond := range l.state.Conditions {
		l.decide(cond, now)
	}
}

// SettleUncovered ends the faults of earlier boots that need clean samples which no
// check on this host takes. It is called when all checks are known to Cover.
func (l *Ledger) SettleUncovered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	ended := false
	for _, e := range slices.Clone(l.state.Entries) {
		if e.judgment.rule.Kind == ClearPoll && !l.covers(e) && e.Boot != l.opts.Boot && l.opts.Boot != "" {
			l.state.relapsed(e, now)
			l.end(e, now, "reboot", true)
			ended = true
		}
	}
	if ended {
		l.settle(now)
	}
}

func (l *Ledger) covers(e *Entry) bool {
	if l.covered[e.Reason] {
		return true
	}
	row, ok := l.opts.Catalog.Lookup(e.Reason)
	return ok && l.covered[row.Code]
}

// Tick does what is due by time alone: events that have not happened again for an
// hour are forgotten, and counts that rose are told. It is called about once a
// minute.
func (l *Ledger) Tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	before := len(l.state.Entries) + len(l.state.Outbox)
	for _, e := range slices.Clone(l.state.Entries) {
		quiet := now.Sub(e.Last) > eventQuiet
		transient := e.judgment.rule.Kind == ClearEvent ||
			(e.judgment.rule.Kind == ClearPoll && !e.fatal() && !l.covers(e))
		if quiet && transient {
			l.end(e, now, "", false)
			continue
		}
		if e.judgment.severity != health.Info {
			l.tellAgain(e, now)
		}
	}
	l.expireOutbox(now)
	if len(l.state.Entries)+len(l.state.Outbox) != before {
		l.settle(now)
	}
}

// end takes the entry out and into the history. how is empty for events, which do
// not end but pass.
func (l *Ledger) end(e *Entry, now time.Time, how string, tell bool) {
	l.state.Entries = slices.DeleteFunc(l.state.Entries, func(x *Entry) bool { return x == e })
	l.remember(e, now, how)
	if tell && e.judgment.severity != health.Info {
		l.tellEnd(e, now, how)
	}
}

func describeEnd(how string) string {
	switch how {
	case "clean samples":
		return "recovered: the last samples are clean"
	case "reboot":
		return "recovered: the node has booted since"
	case "driver":
		return "recovered: the driver gave the all-clear"
	}
	return fmt.Sprintf("recovered: %s", how)
}
