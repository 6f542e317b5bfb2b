package monitor

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ekslogs/ekslogs/pkg/agent/config"
)

const (
	// flushEvery is how often counts that rose are saved.
	flushEvery = time.Second
	tickEvery  = time.Minute
	// evaluateEvery is how often, at the start, it is looked whether the logs have been
	// read to their present end.
	evaluateEvery = 500 * time.Millisecond
)

// loop is the one place where things that are not findings happen: saving, ticking,
// blindness, reloads.
func (m *Monitor) loop(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	changedFile := m.watchConfig(ctx)
	orders := m.watchOrders(ctx)

	stop := m.start(ctx)
	defer func() { stop() }()

	flush := stopped()
	look := stopped()
	evaluate := time.NewTimer(evaluateEvery)
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	defer evaluate.Stop()
	defer flush.Stop()
	defer look.Stop()
	flushing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.ledger.Changed():
			m.publisher.Wake()
			m.events.Wake()
			m.opts.Metrics.Conditions(m.ledger.View())
			if !flushing && m.ledger.Dirty() {
				flushing = true
				flush.Reset(flushEvery)
			}
		case <-flush.C:
			flushing = false
			m.flush()
		case <-tick.C:
			m.ledger.Tick()
			m.opts.Metrics.Queue(len(m.ledger.Pending()))
			m.lookAndPlan(look)
		case <-m.wake:
			m.lookAndPlan(look)
		case <-look.C:
			m.lookAndPlan(look)
		case <-evaluate.C:
			if !m.evaluated(time.Now()) {
				evaluate.Reset(evaluateEvery)
			}
		case <-orders:
			m.obeyOrders()
		case <-hup:
			stop = m.restart(ctx, stop)
			evaluate.Reset(evaluateEvery)
		case <-changedFile:
			stop = m.restart(ctx, stop)
			evaluate.Reset(evaluateEvery)
		}
	}
}

func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

func (m *Monitor) lookAndPlan(look *time.Timer) {
	if d := m.lookAtSources(time.Now()); d > 0 {
		look.Reset(d)
	}
}

// watchConfig tells of changes of the config file; without one, never.
func (m *Monitor) watchConfig(ctx context.Context) <-chan struct{} {
	if m.opts.ConfigPath == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Dir(m.opts.ConfigPath)); err != nil {
		return nil // no folder, no file that could change
	}
	ch, err := config.Watch(ctx, m.opts.ConfigPath)
	if err != nil {
		m.log.Warn("changes of the config file are not noticed; send SIGHUP after a change", "err", err)
		return nil
	}
	return ch
}

// restart reads the config again, and if it is good works by it from now on.
func (m *Monitor) restart(ctx context.Context, stop func()) func() {
	// An editor or the kubelet may still be at it.
	select {
	case <-ctx.Done():
		return stop
	case <-time.After(100 * time.Millisecond):
	}
	if !m.reload() {
		return stop
	}
	stop()
	return m.start(ctx)
}

// reload reads the config, and reports whether there is a new one. A bad file
// changes nothing: the agent goes on with what it had.
func (m *Monitor) reload() bool {
	if m.opts.ConfigPath == "" {
		return true
	}
	cfg, err := config.Load(m.opts.ConfigPath)
	if err != nil {
		m.log.Error("the config is not used, the last good one stays; check it with \"node-agent config validate\"", "err", err)
		return false
	}
	for _, code := range cfg.UnknownReasons(m.opts.Catalog) {
		m.log.Warn("the config speaks of a reason that the catalogue does not have", "reason", code)
	}
	m.mu.Lock()
	m.cfg = cfg
	m.mu.Unlock()
	m.log.Debug("config read", "path", m.opts.ConfigPath)
	return true
}
