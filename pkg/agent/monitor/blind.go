package monitor

import (
	"fmt"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

const (
	// monitorBlind is the reason code for what cannot be watched.
	monitorBlind = "MonitorBlind"
	// blindGrace is how long a source may be unreadable before it is told: a restart of
	// journald is over in less.
	blindGrace = 10 * time.Second
	// lossQuiet is how long after the last lost record the loss is still told.
	lossQuiet = 10 * time.Minute
	// failuresToBlind is how many runs of a check in a row must fail.
	failuresToBlind = 3
)

// lookAtSources tells of sources that cannot be read, and to the conditions that
// need them that they are blind. It returns when it wants to look again, zero when
// nothing is pending.
func (m *Monitor) lookAtSources(now time.Time) time.Duration {
	var again time.Duration
	want := func(d time.Duration) {
		if again == 0 || d < again {
			again = d
		}
	}
	blind := map[health.ConditionType][]string{}
	for _, f := range m.feeds {
		st := f.source.Status()
		m.opts.Metrics.Source(st)
		isBlind := st.Blind != ""
		if isBlind {
			if left := blindGrace - now.Sub(st.Since); left > 0 {
				isBlind = false
				want(left)
			}
		}
		if isBlind {
			m.tellBlind(st.Name, fmt.Sprintf("%s cannot be read, faults that show there are not seen: %s", st.Name, st.Blind))
			for _, cond := range f.required {
				blind[cond] = append(blind[cond], st.Name)
			}
		} else if st.Up || st.Absent {
			m.seeing(st.Name)
		}
		if d := m.lookAtLoss(st, now); d > 0 {
			want(d)
		}
	}
	for _, cond := range conditionTypes() {
		m.ledger.SetBlind(cond, blind[cond])
	}
	return again
}

// tellBlind tells once of a thing that cannot be watched.
func (m *Monitor) tellBlind(subject, message string) {
	m.mu.Lock()
	told := m.blindTold[subject]
	m.blindTold[subject] = true
	m.mu.Unlock()
	if told {
		return
	}
	m.log.Warn("blind", "on", subject, "why", message)
	m.observe(health.Finding{
		Reason: monitorBlind, Severity: health.Warning, Subject: subject, Message: message, Origin: health.OriginCheck,
	})
}

// seeing ends what tellBlind told, also before a restart of the agent.
func (m *Monitor) seeing(subject string) {
	m.mu.Lock()
	delete(m.blindTold, subject)
	m.mu.Unlock()
	m.ledger.End("", monitorBlind, subject, "it can be read again")
}

// lookAtLoss tells of records that were lost.
func (m *Monitor) lookAtLoss(st host.SourceStatus, now time.Time) time.Duration {
	subject := st.Name + " records"
	loss := m.losses[st.Name]
	switch {
	case st.Lost > loss.count:
		m.log.Warn("records were lost before they were read", "source", st.Name, "records", st.Lost-loss.count)
		m.losses[st.Name] = lossState{st.Lost, now}
		m.observe(health.Finding{
			Reason: monitorBlind, Severity: health.Warning, Subject: subject, Origin: health.OriginCheck,
			Message:  "records of " + st.Name + " were lost before they were read, faults that they told of are not seen",
			Evidence: fmt.Sprintf("%d records since the start of the agent", st.Lost),
		})
		return lossQuiet
	case loss.at.IsZero():
		return 0
	case now.Sub(loss.at) >= lossQuiet:
		m.losses[st.Name] = lossState{count: loss.count}
		m.ledger.End("", monitorBlind, subject, "no more records were lost")
		return 0
	}
	return lossQuiet - now.Sub(loss.at)
}

type lossState struct {
	count uint64
	at    time.Time
}
