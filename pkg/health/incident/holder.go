package incident

import (
	"slices"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// maxHeld bounds how many findings a detector holds back at a time.
const maxHeld = 128

// holder holds findings back, by key, until more is known about them or until they
// are due. It gives a detector its Due and Flush.
type holder struct{ items []*held }

type held struct {
	key string
	due time.Time
	f   health.Finding
}

// hold keeps f until due. What is held with the same key stays and is returned
// instead: the first line of an incident is its finding. When too much is held, the
// oldest is due at once.
func (h *holder) hold(key string, due time.Time, f health.Finding) *held {
	if it := h.get(key); it != nil {
		return it
	}
	if len(h.items) >= maxHeld {
		h.items[0].due = due.Add(-24 * time.Hour)
	}
	it := &held{key: key, due: due, f: f}
	h.items = append(h.items, it)
	return it
}

func (h *holder) get(key string) *held {
	for _, it := range h.items {
		if it.key == key {
			return it
		}
	}
	return nil
}

// take removes what is held with key and returns it, nil for none.
func (h *holder) take(key string) *held {
	for i, it := range h.items {
		if it.key == key {
			h.items = slices.Delete(h.items, i, i+1)
			return it
		}
	}
	return nil
}

// Due implements Detector.
func (h *holder) Due() time.Time {
	var due time.Time
	for _, it := range h.items {
		if due.IsZero() || it.due.Before(due) {
			due = it.due
		}
	}
	return due
}

// Flush implements Detector: what is due, in the order in which it was held.
func (h *holder) Flush(now time.Time) []health.Finding {
	var out []health.Finding
	h.items = slices.DeleteFunc(h.items, func(it *held) bool {
		if !now.IsZero() && now.Before(it.due) {
			return false
		}
		out = append(out, it.f)
		return true
	})
	return out
}

// nothing is the Due and Flush of detectors that hold nothing back.
type nothing struct{}

func (nothing) Due() time.Time                   { return time.Time{} }
func (nothing) Flush(time.Time) []health.Finding { return nil }
