package ledger

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// NodeCondition is one of our condition types as the Node has it.
type NodeCondition struct {
	Type    health.ConditionType
	Healthy bool
	Reason  string
	Message string
	Since   time.Time
}

// Adopt takes over what the Node says about our condition types. It is called once,
// before the first write. What the ledger knows goes first; what only the Node
// knows is kept: a fault stays one until its own rule ends it, and the time of its
// transition stays.
func (l *Ledger) Adopt(conditions []NodeCondition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, nc := range conditions {
		if !l.enabled[nc.Type] || nc.Since.IsZero() {
			continue
		}
		if !nc.Healthy && nc.Reason != "" && !l.knows(nc) {
			l.adoptFault(nc)
		}
		healthy := !l.anyFatal(nc.Type)
		cs := l.state.Conditions[nc.Type]
		switch {
		case cs == nil && healthy == nc.Healthy:
			l.state.Conditions[nc.Type] = &conditionState{Healthy: healthy, Since: seconds(nc.Since)}
		case cs == nil:
			l.state.Conditions[nc.Type] = &conditionState{Healthy: healthy, Since: seconds(now)}
		case l.fresh && healthy == nc.Healthy && nc.Since.Before(cs.Since):
			// The fault was found again before the Node was read.
			cs.Healthy, cs.Since = healthy, seconds(nc.Since)
		case cs.Healthy != healthy && healthy == nc.Healthy:
			cs.Healthy, cs.Since = healthy, seconds(nc.Since)
		}
	}
	l.settle(now)
}

// knows reports whether the ledger has its own word on the Node's fault: it is
// active, or it ended after the Node turned False (and the write that says so was
// lost).
func (l *Ledger) knows(nc NodeCondition) bool {
	if l.anyFatal(nc.Type) {
		return true
	}
	for _, in := range l.state.Incidents {
		if in.Condition == string(nc.Type) && in.Reason == nc.Reason && in.To != nil && !in.To.Before(seconds(nc.Since)) {
			return true
		}
	}
	return false
}

func (l *Ledger) anyFatal(cond health.ConditionType) bool {
	for _, e := range l.state.Entries {
		if e.Condition == cond && e.fatal() {
			return true
		}
	}
	return false
}

func (l *Ledger) adoptFault(nc NodeCondition) {
	j := l.policy.judge(l.opts.Catalog, nc.Reason, health.Fatal, nc.Type, "")
	e := &Entry{
		Condition: nc.Type, Reason: clean(nc.Reason, maxSubject), Severity: health.Fatal,
		Message: clean(nc.Message, maxMessage), Evidence: "taken over from the Node's own condition",
		First: seconds(nc.Since), Last: seconds(nc.Since), Count: 1, Boot: l.opts.Boot,
		Key: "adopted/" + nc.Since.UTC().Format(time.RFC3339), Adopted: true, Told: 1, ToldAt: l.now(), judgment: j,
	}
	now := l.now()
	switch {
	case j.disabled:
		return
	case j.rule.endsAtReboot() && nc.Since.Before(l.opts.BootTime):
		// The node has booted since.
		l.state.relapsed(e, now)
		l.remember(e, now, "reboot")
		l.tellEnd(e, now, "reboot")
		return
	}
	l.state.Entries = append(l.state.Entries, e)
}
