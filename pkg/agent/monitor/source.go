package monitor

import (
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/agent/publish"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
)

// The methods of publish.Source.

// Desired is what the Node shall show.
func (m *Monitor) Desired() publish.Desired {
	v := m.ledger.View()
	d := publish.Desired{Conditions: v.Conditions}
	d.Health = annotation.Health{AgentVersion: m.opts.Version, Findings: v.Findings, Incidents: v.Incidents}
	m.mu.Lock()
	for _, w := range m.watchers {
		d.Health.Monitors = append(d.Health.Monitors, w.shown(v.Conditions))
	}
	for _, t := range conditionTypes() {
		if m.on[t] {
			d.On = append(d.On, t)
		} else {
			d.Off = append(d.Off, t)
		}
	}
	m.mu.Unlock()
	if m.opts.GPUs != nil {
		d.Health.GPUs = m.opts.GPUs(v.Findings)
	}
	return d
}

// Adopt takes over what the Node says.
func (m *Monitor) Adopt(conditions []ledger.NodeCondition) {
	m.ledger.Adopt(conditions)
	m.adopted.Store(true)
	m.poke()
}

// AllClear obeys a person's word, "REASON" or "REASON/SUBJECT".
func (m *Monitor) AllClear(value, by string) {
	if by == "" {
		by = "an annotation of the Node"
	}
	reason, subject, _ := strings.Cut(value, "/")
	n := m.ledger.AllClear(strings.TrimSpace(reason), strings.TrimSpace(subject), by)
	m.log.Info("all-clear", "reason", reason, "subject", subject, "by", by, "faults", n)
}

// Rival tells of another agent that writes our conditions.
func (m *Monitor) Rival(name string) {
	m.standby.Store(name != "")
	m.opts.Metrics.Standby(name != "")
	if name == "" {
		m.log.Info("this agent is in charge of the node's conditions again")
		for _, f := range m.ledger.View().Findings {
			if f.Reason == publish.AnotherAgentActive {
				m.ledger.End("", f.Reason, f.Subject, "it does not write any more")
			}
		}
		return
	}
	m.log.Warn("AnotherAgentActive: another agent writes this node's conditions, this one stands by", "agent", name,
		"next", "remove one of the two, or start this one with --takeover")
	m.observe(health.Finding{
		Reason: publish.AnotherAgentActive, Severity: health.Warning, Subject: name, Origin: health.OriginCheck,
		Message: "another agent writes this node's conditions; node-agent stands by until it is gone, or until it is started with --takeover",
	})
}

// Published counts a write.
func (m *Monitor) Published(latency time.Duration, err error) { m.opts.Metrics.Published(latency, err) }

// Standby reports whether another agent is in charge of this node, so that nothing
// is to be answered by this one.
func (m *Monitor) Standby() bool { return m.standby.Load() }

// watcher is a monitor as the annotation shows it.
type watcher struct {
	name      string
	condition health.ConditionType
	on        bool
	why       string
	since     time.Time
}

func (w watcher) shown(conditions []ledger.Condition) annotation.Monitor {
	a := annotation.Monitor{Name: w.name, Condition: string(w.condition), State: annotation.MonitorOn, Since: w.since, Message: w.why}
	if !w.on {
		a.State = annotation.MonitorOff
		return a
	}
	for _, c := range conditions {
		if c.Type == w.condition && len(c.Blind) > 0 {
			a.State, a.Message = annotation.MonitorBlind, strings.Join(c.Blind, ", ")
		}
	}
	return a
}

func conditionTypes() []health.ConditionType {
	return []health.ConditionType{
		health.KernelReady, health.ContainerRuntimeReady, health.NetworkingReady, health.StorageReady, health.AcceleratedHardwareReady,
	}
}
