// Package ledger knows what is wrong with the node now, since when, and what ends
// it. Findings go in; what each node condition is, which Events are to be written,
// and the history of incidents come out. It does no I/O of its own: a Store keeps
// its state, and the clock is given to it.
//
// The rules that it stands for: the time of a transition moves only when the status
// moves; a restart goes on with what was known; a fault ends by its own rule and
// never because nobody looked; a record that is read twice counts once.
package ledger

import (
	"slices"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// Options make a Ledger.
type Options struct {
	// Catalog is the catalogue of reasons.
	Catalog *health.Catalog
	// Store keeps the state over restarts; nil keeps it in memory only.
	Store Store
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Boot is the id of this boot, and BootTime about when it was (the wall clock now
	// less the uptime).
	Boot     string
	BootTime time.Time
	// Policy is what the operator decided.
	Policy Policy
	// Redact takes secrets out of evidence; nil takes nothing out.
	Redact func(string) string
}

// Ledger is safe for concurrent use.
type Ledger struct {
	opts Options

	mu      sync.Mutex
	policy  Policy
	state   state
	covered map[string]bool
	blind   map[health.ConditionType][]string
	enabled map[health.ConditionType]bool
	fresh   bool
	dirty   bool
	saveErr error
	changed chan struct{}
}

// Open loads the ledger from its store. The ledger is usable even when an error is
// returned: the error says why what was known is lost, and the ledger starts empty.
func Open(opts Options) (*Ledger, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Redact == nil {
		opts.Redact = func(s string) string { return s }
	}
	opts.Boot = bootID(opts.Boot)
	l := &Ledger{
		opts: opts, policy: opts.Policy, changed: make(chan struct{}, 1),
		blind: map[health.ConditionType][]string{}, enabled: map[health.ConditionType]bool{},
		covered: map[string]bool{},
	}
	err := l.load()
	for _, e := range l.state.Entries {
		e.judgment = l.policy.judge(opts.Catalog, e.Reason, e.Severity, e.Condition, e.Origin)
	}
	if !l.fresh && opts.Boot != "" && l.state.Boot != opts.Boot {
		l.rebooted()
	}
	l.state.Boot = opts.Boot
	return l, err
}

// Fresh reports whether nothing was known at the start: there was no ledger, or it
// could not be read.
func (l *Ledger) Fresh() bool { return l.fresh }

// Changed is sent to, at most one ahead, after what View or Pending return changed.
func (l *Ledger) Changed() <-chan struct{} { return l.changed }

func (l *Ledger) notify() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *Ledger) now() time.Time { return l.opts.Now().UTC() }

// SetPolicy judges everything that is known anew.
func (l *Ledger) SetPolicy(p Policy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.policy = p
	now := l.now()
	for _, e := range slices.Clone(l.state.Entries) {
		e.judgment = p.judge(l.opts.Catalog, e.Reason, e.Severity, e.Condition, e.Origin)
		if e.judgment.disabled {
			l.end(e, now, "disabled by config", false)
		}
	}
	l.settle(now)
}

// Enable says that a monitor for the condition is on. Its condition is published as
// soon as there is a fault, or as soon as Evaluated is called.
func (l *Ledger) Enable(cond health.ConditionType) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enabled[cond] = true
	l.settle(l.now())
}

// Disable says that the monitor for the condition is off. The condition, what is
// known about it, and the time of its transition are forgotten.
func (l *Ledger) Disable(cond health.ConditionType) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	delete(l.enabled, cond)
	for _, e := range slices.Clone(l.state.Entries) {
		if e.Condition == cond {
			l.end(e, now, "monitor turned off", false)
		}
	}
	delete(l.state.Conditions, cond)
	l.settle(now)
}

// Evaluated says that the condition's sources have been read to their present end:
// with no fault found, it is healthy. Before that, a condition that the Node does
// not have yet is not written: not knowing is not health.
func (l *Ledger) Evaluated(cond health.ConditionType) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enabled[cond] && l.state.Conditions[cond] == nil {
		now := l.now()
		l.state.Conditions[cond] = &conditionState{Healthy: true, Since: seconds(now)}
		l.settle(now)
	}
}

// Cover names the reasons, as the catalogue writes them, of which some check takes
// samples on this host. What is not covered cannot have a clean sample.
func (l *Ledger) Cover(reasons []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range reasons {
		l.covered[r] = true
	}
}

// SetBlind names the required sources of the condition that cannot be read now;
// none means that it sees again. Status, reason and transition stay as they are.
func (l *Ledger) SetBlind(cond health.ConditionType, sources []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Equal(l.blind[cond], sources) {
		return
	}
	if len(sources) == 0 {
		delete(l.blind, cond)
	} else {
		l.blind[cond] = slices.Sorted(slices.Values(sources))
	}
	l.notify()
}

// settle decides each condition anew, saves, and tells that something changed.
func (l *Ledger) settle(now time.Time) {
	for cond := range l.enabled {
		l.decide(cond, now)
	}
	l.save()
	l.notify()
}

// decide moves the condition's status, and with it the time of its transition, if
// it has to move.
func (l *Ledger) decide(cond health.ConditionType, now time.Time) {
	healthy := !slices.ContainsFunc(l.state.Entries, func(e *Entry) bool { return e.Condition == cond && e.fatal() })
	cs := l.state.Conditions[cond]
	switch {
	case cs == nil && healthy:
		// Not evaluated yet: Evaluated makes it.
	case cs == nil:
		l.state.Conditions[cond] = &conditionState{Since: seconds(now)}
	case cs.Healthy != healthy:
		cs.Healthy, cs.Since = healthy, seconds(now)
	}
}

func (l *Ledger) find(cond health.ConditionType, reason, subject string) *Entry {
	for _, e := range l.state.Entries {
		if e.is(cond, reason, subject) {
			return e
		}
	}
	return nil
}

func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
