package publish

import (
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// Manager is the name under which the API server records what this agent writes.
const Manager = "ekslogs-node-agent"

// AnotherAgentActive is the reason code for standing by.
const AnotherAgentActive = "AnotherAgentActive"

// gone is how long another agent must have been silent to count as gone. Agents
// write a heartbeat every five minutes.
const gone = 15 * time.Minute

// rival is another agent that writes our conditions.
type rival struct {
	name string
	// wrote is when it last wrote, by its own words; seen is when we learnt of it, by
	// our own clock, which is what its silence is measured with.
	wrote time.Time
	seen  time.Time
}

// person reports whether a manager is a person's tool rather than an agent: what
// people write by hand is put right and no reason to stand back.
func person(manager string) bool {
	return strings.HasPrefix(manager, "kubectl") || manager == "curl" || manager == ""
}

// findRival looks for another writer of the types that we want to write. instance is
// this process; ours are the heartbeats that it wrote, none before its first write,
// after which another instance's word must be newer.
func findRival(s *snapshot, types []health.ConditionType, instance string, ours map[health.ConditionType]time.Time) (name string, wrote time.Time) {
	own := len(ours) > 0
	for _, t := range types {
		w, ok := s.writers[t]
		if !ok || w.manager == Manager || person(w.manager) {
			continue
		}
		if w.at.After(wrote) {
			name, wrote = w.manager, w.at
		}
	}
	if name == "" && own && s.instance != "" && s.instance != instance {
		// An agent of our kind that started later. It wins, so that an update that
		// starts the new agent before the old one has ended never hangs.
		for _, t := range types {
			if w := s.writers[t]; w.manager == Manager && w.at.After(wrote) {
				wrote = w.at
			}
		}
		name = "another " + Manager
	}
	if name == "" && len(s.writers) == 0 {
		return untracked(s, types, ours)
	}
	return name, wrote
}

// untracked looks for another writer on a Node of which the API server does not
// track managers: one that was created without any field that somebody could own.
// Heartbeats that we did not write are an agent's; people who edit a condition leave
// them alone.
func untracked(s *snapshot, types []health.ConditionType, ours map[health.ConditionType]time.Time) (name string, wrote time.Time) {
	if len(ours) == 0 && s.health != "" && !s.standby {
		return "", time.Time{} // written by this agent before its restart
	}
	for _, t := range types {
		c, ok := s.conditions[t]
		if at := c.LastHeartbeatTime.Time; ok && at.After(ours[t]) && at.After(wrote) {
			name, wrote = "another agent (its reason: "+c.Reason+")", at
		}
	}
	return name, wrote
}

// standby says who writes our conditions instead of us; empty when we are in charge.
func (p *Publisher) standby(s *snapshot, types []health.ConditionType, now time.Time) string {
	if p.opts.Takeover {
		return ""
	}
	name, wrote := findRival(s, types, p.opts.Instance, p.applied.wrote)
	before := p.rival.name
	switch {
	case name == "":
		p.rival = rival{}
	case name == p.silent.name && wrote.Equal(p.silent.wrote):
	case name == p.rival.name:
		if wrote.After(p.rival.wrote) {
			p.rival.wrote, p.rival.seen = wrote, now
		}
	case !p.own && now.Sub(wrote).Abs() > gone:
		// The traces of one that is long gone: no two clocks differ by that much.
	default:
		p.rival = rival{name: name, wrote: wrote, seen: now}
	}
	if p.rival.name != "" && now.Sub(p.rival.seen) > gone {
		p.silent, p.rival = p.rival, rival{}
	}
	if p.rival.name != before {
		p.opts.Source.Rival(p.rival.name)
	}
	return p.rival.name
}
