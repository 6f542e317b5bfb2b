// Package board keeps the health of nodes up to date while watches tell of changes, at
// the cost of what has changed.
package board

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
)

// again is how often all nodes are evaluated anew: heartbeats age and warnings leave
// their window without anybody telling.
const again = 10 * time.Second

// Board is the nodes as last told. It is safe for concurrent use, and is what
// cluster.Follow and cluster.FollowEvents tell.
type Board struct {
	policy *fleet.Policy
	window time.Duration

	mu     sync.Mutex
	synced bool
	facts  map[string]*fleet.Facts
	rows   map[string]*fleet.Row
	dirty  map[string]bool
	// all says that every row is to be evaluated anew.
	all       bool
	evaluated time.Time
	pools     fleet.Pools
	// names are those of rows, sorted, unless renamed says that others have come.
	names   []string
	renamed bool

	events     map[string]fleet.Occurrence
	byNode     map[string][]fleet.Occurrence
	haveEvents bool
	contact    error
	eventError error

	changed chan struct{}
}

// New returns a board without nodes. Warnings count within window.
func New(policy *fleet.Policy, window time.Duration) *Board {
	return &Board{
		policy: policy, window: window, changed: make(chan struct{}, 1),
		facts: map[string]*fleet.Facts{}, rows: map[string]*fleet.Row{}, dirty: map[string]bool{},
		events: map[string]fleet.Occurrence{},
	}
}

// Changed holds a value after changes, one for any number of them.
func (b *Board) Changed() <-chan struct{} { return b.changed }

func (b *Board) tell() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// Replace implements cluster.Watcher.
func (b *Board) Replace(all []*fleet.Facts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.facts)
	clear(b.rows)
	for _, f := range all {
		b.facts[f.Name] = f
	}
	b.synced, b.all = true, true
	b.tell()
}

// Set implements cluster.Watcher.
func (b *Board) Set(f *fleet.Facts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !sameStatus(b.facts[f.Name], f) {
		// It may count for the limits of its whole pool.
		b.all = true
	}
	b.facts[f.Name] = f
	b.dirty[f.Name] = true
	b.tell()
}

// sameStatus reports whether all conditions have the status that they had: what most
// updates of a Node leave as it is.
func sameStatus(a, b *fleet.Facts) bool {
	if a == nil || len(a.Conditions) != len(b.Conditions) {
		return false
	}
	for i := range a.Conditions {
		if a.Conditions[i].Type != b.Conditions[i].Type || a.Conditions[i].Status != b.Conditions[i].Status {
			return false
		}
	}
	return true
}

// Remove implements cluster.Watcher.
func (b *Board) Remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.facts, name)
	delete(b.rows, name)
	b.all = true
	b.tell()
}

// Contact implements cluster.Watcher.
func (b *Board) Contact(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (err == nil) != (b.contact == nil) {
		b.tell()
	}
	b.contact = err
}

// ReplaceEvents implements cluster.EventWatcher.
func (b *Board) ReplaceEvents(all map[string]fleet.Occurrence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events, b.byNode, b.haveEvents, b.all = all, nil, true, true
	b.tell()
}

// SetEvent implements cluster.EventWatcher.
func (b *Board) SetEvent(name string, o fleet.Occurrence) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events[name] = o
	b.byNode = nil
	b.dirty[o.Node] = true
	b.tell()
}

// RemoveEvent implements cluster.EventWatcher.
func (b *Board) RemoveEvent(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o, ok := b.events[name]
	if !ok {
		return
	}
	delete(b.events, name)
	b.byNode = nil
	b.dirty[o.Node] = true
	b.tell()
}

// EventContact implements cluster.EventWatcher.
func (b *Board) EventContact(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eventError = err
	b.tell()
}

// State is the board at a moment.
type State struct {
	// Rows are in the order of their names. They must not be changed.
	Rows []*fleet.Row
	View fleet.View
	// Synced says that the nodes are known: no rows means no nodes then.
	Synced bool
	// Contact is why the API server tells nothing at present; EventError why it tells
	// no Events.
	Contact, EventError error
}

// At returns the board at now, the API server's time.
func (b *Board) At(now time.Time) State {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byNode == nil {
		b.byNode = map[string][]fleet.Occurrence{}
		for _, o := range b.events {
			b.byNode[o.Node] = append(b.byNode[o.Node], o)
		}
	}
	view := fleet.View{Now: now, Policy: b.policy, Window: b.window, Events: b.byNode, HaveEvents: b.haveEvents, Pools: b.pools}
	if b.all || now.Sub(b.evaluated) > again {
		b.renamed = true
		b.pools = fleet.Pools{}
		for _, f := range b.facts {
			b.pools.Add(b.policy, f)
		}
		view.Pools = b.pools
		for name, f := range b.facts {
			b.rows[name] = view.Evaluate(f)
		}
		b.all, b.evaluated = false, now
	} else {
		for name := range b.dirty {
			if f := b.facts[name]; f != nil {
				b.rows[name] = view.Evaluate(f)
			}
		}
	}
	clear(b.dirty)
	s := State{View: view, Synced: b.synced, Contact: b.contact, EventError: b.eventError, Rows: make([]*fleet.Row, 0, len(b.rows))}
	if len(b.names) != len(b.rows) || b.renamed {
		b.names, b.renamed = slices.Sorted(maps.Keys(b.rows)), false
	}
	for _, name := range b.names {
		s.Rows = append(s.Rows, b.rows[name])
	}
	return s
}

// Throttle calls draw after changes, at most once in every and at least once in idle,
// until done is closed.
func (b *Board) Throttle(done <-chan struct{}, every, idle time.Duration, draw func()) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-b.changed:
		case <-timer.C:
		}
		draw()
		select {
		case <-done:
			return
		case <-time.After(every):
		}
		timer.Reset(idle)
	}
}
