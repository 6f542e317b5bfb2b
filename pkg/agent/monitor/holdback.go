package monitor

import (
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// longestHold is more than any detector holds a finding back.
const longestHold = time.Minute

// holdback keeps checkpoints from passing records whose findings are still held back
// by a detector: they are in no ledger yet, and after a crash only reading the records
// again finds them. It is safe for concurrent use.
type holdback struct {
	store host.Checkpoints
	now   func() time.Time

	mu      sync.Mutex
	holding bool
	// Positions wait here. Those in old were set before began, those in young since.
	// A log that never lets the detectors rest moves its checkpoint on by generations.
	old, young map[string]string
	began      time.Time
}

func newHoldback(store host.Checkpoints) *holdback {
	return &holdback{store: store, now: time.Now, old: map[string]string{}, young: map[string]string{}}
}

// hold says whether any finding is held back now. It is called before the source of a
// record is told that the record was handled.
func (h *holdback) hold(holding bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if holding && !h.holding {
		h.began = h.now()
	}
	if !holding {
		h.commit()
		h.commit()
	}
	h.holding = holding
}

// commit lets the older generation of positions go, and makes the younger the older.
func (h *holdback) commit() {
	for source, position := range h.old {
		h.store.Set(source, position)
	}
	clear(h.old)
	h.old, h.young = h.young, h.old
}

// Get implements host.Checkpoints: a source goes on after what it has read.
func (h *holdback) Get(source string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, waiting := range []map[string]string{h.young, h.old} {
		if position, ok := waiting[source]; ok {
			return position
		}
	}
	return h.store.Get(source)
}

// Set implements host.Checkpoints.
func (h *holdback) Set(source, position string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.holding {
		h.store.Set(source, position)
		return
	}
	if now := h.now(); now.Sub(h.began) >= longestHold {
		h.commit()
		h.began = now
	}
	h.young[source] = position
}

// drop forgets the positions that wait: what was held back is gone with its detector,
// and whoever reads next reads these records again.
func (h *holdback) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.old)
	clear(h.young)
	h.holding = false
}
