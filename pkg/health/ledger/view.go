package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

// maxConditionMessage bounds a condition's message: it rides along with each write
// of the Node by anybody.
const maxConditionMessage = 1 << 10

// Condition is what a node condition is.
type Condition struct {
	Type health.ConditionType
	// Healthy is the status: True or False.
	Healthy bool
	Reason  string
	Message string
	// Since is when the status last changed, in whole seconds.
	Since time.Time
	// Blind names the required sources that cannot be read: the condition's heartbeat
	// stands still while there are any.
	Blind []string
}

// View is what the Node shall show.
type View struct {
	// Conditions are those of the monitors that are on, sorted by type.
	Conditions []Condition
	// Findings are the active faults, the worst and oldest first.
	Findings []annotation.Finding
	// Incidents are the active and the last past ones, newest first.
	Incidents []annotation.Incident
}

// View returns what the Node shall show now.
func (l *Ledger) View() View {
	l.mu.Lock()
	defer l.mu.Unlock()
	var v View
	for cond := range l.enabled {
		if cs := l.state.Conditions[cond]; cs != nil {
			v.Conditions = append(v.Conditions, l.condition(cond, cs))
		}
	}
	slices.SortFunc(v.Conditions, func(a, b Condition) int { return strings.Compare(string(a.Type), string(b.Type)) })

	entries := slices.SortedFunc(slices.Values(l.state.Entries), byWorst)
	for _, e := range entries {
		v.Incidents = append(v.Incidents, e.incident())
		if e.judgment.severity == health.Info {
			continue
		}
		v.Findings = append(v.Findings, annotation.Finding{
			Condition: string(e.Condition), Reason: e.Reason, Severity: string(e.judgment.severity), Shadow: e.judgment.shadow,
			Subject: e.Subject, Since: e.First, Evidence: e.Evidence, Clears: string(e.judgment.rule.Kind), Replace: e.replace(),
		})
	}
	v.Incidents = append(v.Incidents, l.state.Incidents...)
	slices.SortStableFunc(v.Incidents, func(a, b annotation.Incident) int { return b.From.Compare(a.From) })
	if len(v.Incidents) > annotation.MaxIncidents {
		v.Incidents = v.Incidents[:annotation.MaxIncidents]
	}
	return v
}

func (l *Ledger) condition(cond health.ConditionType, cs *conditionState) Condition {
	c := Condition{Type: cond, Healthy: cs.Healthy, Since: cs.Since, Blind: l.blind[cond]}
	suffix := ""
	if len(c.Blind) > 0 {
		suffix = clean(" [MonitorBlind: cannot read "+strings.Join(c.Blind, ", ")+"]", maxConditionMessage/4)
		suffix = " " + suffix
	}
	if cs.Healthy {
		c.Reason, c.Message = healthyWords(cond)
		c.Message += suffix
		return c
	}
	var fatals []*Entry
	for _, e := range l.state.Entries {
		if e.Condition == cond && e.fatal() {
			fatals = append(fatals, e)
		}
	}
	slices.SortFunc(fatals, byAge)
	if len(fatals) > 0 {
		c.Reason = fatals[0].Reason
		c.Message = conditionMessage(fatals, maxConditionMessage-len(suffix)) + suffix
	}
	return c
}

// conditionMessage is the oldest Fatal's message, with the others' reasons. It holds
// nothing that changes while the set of faults stays the same.
func conditionMessage(fatals []*Entry, limit int) string {
	msg := named(fatals[0])
	if fatals[0].Message != "" {
		msg = Notice{Reason: fatals[0].Reason, Subject: fatals[0].Subject, Message: fatals[0].Message}.Text()
	}
	if fatals[0].replace() {
		msg += " (came back after two reboots: replace)"
	}
	const more = ", and more"
	msg = clean(msg, limit-len(more))
	for i, e := range fatals[1:] {
		part := ", " + named(e)
		if i == 0 {
			part = "; also " + named(e)
		}
		if len(msg)+len(part)+len(more) > limit {
			return msg + more
		}
		msg += part
	}
	return msg
}

func named(e *Entry) string {
	if e.Subject == "" {
		return e.Reason
	}
	return e.Reason + " (" + e.Subject + ")"
}

// healthyWords are the reason and message of a healthy condition. The reasons are
// the EKS node monitoring agent's.
func healthyWords(cond health.ConditionType) (reason, message string) {
	what := strings.TrimSuffix(string(cond), "Ready")
	return what + "IsReady", "No " + words(what) + " fault is known"
}

// words turns "ContainerRuntime" into "container runtime".
func words(camel string) string {
	var b strings.Builder
	for i, r := range camel {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
