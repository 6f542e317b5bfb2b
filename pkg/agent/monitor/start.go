package monitor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/agent/config"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/checkpoint"
)

// openCheckpoints opens what remembers how far logs were read. Before positions
// reach the disk, what the records up to them led to must be there.
func (m *Monitor) openCheckpoints() (host.Checkpoints, func()) {
	store, err := checkpoint.Open(m.opts.StateDir, checkpoint.Options{
		BeforeWrite: m.ledger.Flush,
		OnError: func(err error) {
			if err != nil {
				m.opts.Metrics.StateError()
				m.log.Error("the state directory cannot be written: after a restart logs are read again from the last point known", "err", err)
			}
		},
	})
	if err != nil {
		m.log.Warn("logs are read from this boot's start", "err", err)
	}
	return store, func() {
		if err := store.Close(); err != nil {
			m.log.Warn("how far logs were read could not be saved", "err", err)
		}
	}
}

// start works by the present config until the returned function is called, which
// returns when nothing of it is left running.
func (m *Monitor) start(ctx context.Context) func() {
	m.mu.Lock()
	cfg := m.cfg
	m.mu.Unlock()
	m.turnMonitors(cfg)
	policy := cfg.Policy()
	policy.TrustUserspace = m.opts.TrustUserspace
	m.ledger.SetPolicy(policy)

	detector, err := m.opts.Detector(cfg)
	if err != nil {
		m.log.Error("the rules are not used, the last good ones stay; check them with \"node-agent rules test\"", "err", err)
	} else {
		m.pipe.Lock()
		m.detector = detector
		m.pipe.Unlock()
	}

	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	m.feeds = feeds(m.opts.Host, m.positions, m.opts.KmsgFromSeq)
	for _, s := range m.opts.Sources {
		m.feeds = append(m.feeds, feed{source: s})
	}
	for _, f := range m.feeds {
		if s, ok := f.source.(interface{ State() *host.SourceState }); ok {
			s.State().OnChange(func(host.SourceStatus) { m.poke() })
		}
		wg.Go(func() {
			if err := f.source.Run(ctx, m.handle); err != nil {
				m.log.Error("a source ended", "source", f.source.Name(), "err", err)
			}
		})
	}
	checks := m.checks(cfg)
	m.mu.Lock()
	m.firstDone = false
	m.mu.Unlock()
	s := newScheduler(m.opts.Host, m.opts.Node, checks, func(c check.Check) time.Duration {
		if d := cfg.Checks[c.Name()].Interval; d > 0 {
			return time.Duration(d)
		}
		return c.Interval()
	}, m, m.log, time.Now())
	wg.Go(func() { s.run(ctx) })
	return func() {
		cancel()
		wg.Wait()
		m.pipe.Lock()
		if m.due != nil {
			m.due.Stop()
		}
		m.positions.drop()
		m.pipe.Unlock()
	}
}

// checks are those of the monitors that are on, less what the config turns off.
func (m *Monitor) checks(cfg *config.Config) []check.Check {
	if m.opts.Checks == nil {
		return nil
	}
	return slices.DeleteFunc(m.opts.Checks(cfg, m.checkpoints), func(c check.Check) bool {
		return !m.isOn(c.Condition()) || !cfg.Checks[c.Name()].On()
	})
}

// turnMonitors turns monitors on and off, by the config and by the hardware.
func (m *Monitor) turnMonitors(cfg *config.Config) {
	const off, none = "turned off by the config", "no such hardware on this node"
	list := []watcher{
		{name: "kernel", condition: health.KernelReady},
		{name: "container-runtime", condition: health.ContainerRuntimeReady},
		{name: "networking", condition: health.NetworkingReady},
		{name: "storage", condition: health.StorageReady},
		{name: "nvidia", condition: health.AcceleratedHardwareReady},
		{name: "neuron", condition: health.AcceleratedHardwareReady},
	}
	now := time.Now()
	on := map[health.ConditionType]bool{}
	m.mu.Lock()
	for i := range list {
		w := &list[i]
		w.since = now
		w.on = cfg.Monitor(w.name).On()
		if !w.on {
			w.why = off
		}
		if (w.name == "nvidia" && !hasNvidia(m.opts.Host)) || (w.name == "neuron" && !hasNeuron(m.opts.Host)) {
			if w.on {
				w.on, w.why = false, none
			}
		}
		for _, before := range m.watchers {
			if before.name == w.name && before.on == w.on {
				w.since = before.since
			}
		}
		on[w.condition] = on[w.condition] || w.on
	}
	m.watchers, m.on = list, on
	m.mu.Unlock()
	for _, t := range conditionTypes() {
		if on[t] {
			m.ledger.Enable(t)
		} else {
			m.ledger.Disable(t)
		}
	}
}

// evaluated tells the ledger which conditions have been evaluated, and reports
// whether all have. That takes the Node's own word, the required logs read to their
// present end, and one round of the checks.
func (m *Monitor) evaluated(now time.Time) bool {
	m.mu.Lock()
	first := m.firstDone
	on := m.on
	m.mu.Unlock()
	if !first || !m.adopted.Load() {
		return false
	}
	all := true
	for t := range on {
		if !on[t] {
			continue
		}
		if m.caughtUp(t, now) {
			m.ledger.Evaluated(t)
		} else {
			all = false
		}
	}
	return all
}

// caughtUp reports whether the logs that the condition requires have been read to
// their present end: nothing came for a second.
func (m *Monitor) caughtUp(t health.ConditionType, now time.Time) bool {
	for _, f := range m.feeds {
		if !slices.Contains(f.required, t) {
			continue
		}
		st := f.source.Status()
		if st.Absent {
			continue
		}
		if !st.Up || now.Sub(st.Since) < time.Second {
			return false
		}
		// A log that is never silent is judged by how long it has been read.
		if now.Sub(st.LastRecord) < time.Second && now.Sub(st.Since) < 10*time.Second {
			return false
		}
	}
	return true
}
