package monitor

import (
	"errors"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// handle takes a record of any source. When it returns, what the record says is in
// the ledger's store, or is held back by a detector and holds back the checkpoints.
func (m *Monitor) handle(r host.Record) error {
	m.pipe.Lock()
	defer m.pipe.Unlock()
	if m.detector == nil {
		return errors.New("no rules")
	}
	for _, f := range m.detector.Detect(r) {
		m.observe(f)
	}
	m.planFlush()
	return nil
}

// planFlush arranges for what the detectors hold back to come out in time when no
// record follows.
func (m *Monitor) planFlush() {
	due := m.detector.Due()
	m.positions.hold(!due.IsZero())
	if due.IsZero() {
		if m.due != nil {
			m.due.Stop()
		}
		return
	}
	wait := min(max(time.Until(due), 100*time.Millisecond), longestHold)
	if m.due == nil {
		m.due = time.AfterFunc(wait, m.flushDetector)
		return
	}
	m.due.Reset(wait)
}

func (m *Monitor) flushDetector() {
	m.pipe.Lock()
	defer m.pipe.Unlock()
	now := time.Now()
	if m.detector.Due().Sub(now) > longestHold {
		// The clock was stepped back, and no record came that shows it: what waits has
		// waited long enough.
		now = time.Time{}
	}
	for _, f := range m.detector.Flush(now) {
		m.observe(f)
	}
	m.planFlush()
}

// checked takes a run of a check. It belongs to the scheduler's goroutine.
func (m *Monitor) checked(c check.Check, findings []health.Finding, took time.Duration, err error) {
	name := c.Name()
	blind := "check " + name
	switch {
	case errors.Is(err, check.ErrNoData):
		m.opts.Metrics.Checked(name, took, nil)
		return
	case err != nil:
		m.opts.Metrics.Checked(name, took, err)
		m.failures[name]++
		m.log.Debug("a check could not measure", "check", name, "err", err)
		if m.failures[name] == failuresToBlind {
			m.tellBlind(blind, "the check "+name+" cannot measure: "+err.Error())
		}
		return
	}
	m.opts.Metrics.Checked(name, took, nil)
	if m.failures[name] > 0 {
		m.failures[name] = 0
		m.seeing(blind)
	}
	m.ledger.Cover(c.Reasons())
	outcomes := m.ledger.Sampled(ledger.Sample{Check: name, Reasons: c.Reasons(), Findings: findings})
	for i, o := range outcomes {
		m.opts.Metrics.Found(findings[i].Reason, o)
	}
}

// firstRound is called when each check has run once.
func (m *Monitor) firstRound() {
	m.ledger.SettleUncovered()
	m.mu.Lock()
	m.firstDone = true
	m.mu.Unlock()
}
