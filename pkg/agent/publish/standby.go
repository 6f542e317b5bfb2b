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
// this process; own says that this process has written before, so that another
// instance's word must be newer.
func findRival(s *snapshot, types []health.ConditionType, instance string, own bool) (name string, wrote time.Time) {
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
	return name, wrote
}

// standby says who writes our conditions instead of us; empty when we are in charge.
func (p *Publisher) standby(s *snapshot, types []health.ConditionType, now time.Time) string {
	if p.opts.Takeover {
		return ""
	}
	name, wrote := findRival(s, types, p.opts.Instance, p.own)
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
