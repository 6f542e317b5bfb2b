package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

// Store keeps the ledger's state, a JSON document of some ten KiB, as a whole.
type Store interface {
	// Load returns what was saved last; an error that is fs.ErrNotExist when nothing
	// was.
	Load() ([]byte, error)
	// Save replaces it. After a crash, Load returns either the old or the new state.
	Save([]byte) error
}

const stateVersion = 1

type state struct {
	Version    int                                      `json:"version"`
	Boot       string                                   `json:"boot,omitempty"`
	Entries    []*Entry                                 `json:"entries,omitempty"`
	Conditions map[health.ConditionType]*conditionState `json:"conditions,omitempty"`
	// Incidents are those that are over, newest first.
	Incidents []annotation.Incident `json:"incidents,omitempty"`
	Relapses  []relapse             `json:"relapses,omitempty"`
	Outbox    []Notice              `json:"outbox,omitempty"`
	Seen      seen                  `json:"seen"`
}

type conditionState struct {
	Healthy bool      `json:"healthy"`
	Since   time.Time `json:"since"`
}

// load reads the state. On any error the ledger is empty, and fresh.
func (l *Ledger) load() error {
	l.state = state{Version: stateVersion}
	l.fresh = true
	defer func() {
		if l.state.Conditions == nil {
			l.state.Conditions = map[health.ConditionType]*conditionState{}
		}
	}()
	if l.opts.Store == nil {
		return nil
	}
	b, err := l.opts.Store.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the ledger cannot be read, what it knew is taken from the Node instead: %w", err)
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("the ledger is damaged, what it knew is taken from the Node instead: %w", err)
	}
	if s.Version != stateVersion {
		return fmt.Errorf("the ledger has version %d and this build reads %d; what it knew is taken from the Node instead", s.Version, stateVersion)
	}
	for i := 0; i < len(s.Entries); i++ {
		if e := s.Entries[i]; e == nil || e.Reason == "" {
			return errors.New("the ledger is damaged, what it knew is taken from the Node instead: an entry without a reason")
		}
	}
	for cond, cs := range s.Conditions {
		if cs == nil {
			delete(s.Conditions, cond)
		}
	}
	l.state, l.fresh = s, false
	return nil
}

// save writes the state now. A failure is kept for SaveError and tried again with
// the next Flush.
func (l *Ledger) save() {
	if l.opts.Store == nil {
		l.dirty = false
		return
	}
	b, err := json.Marshal(&l.state)
	if err == nil {
		err = l.opts.Store.Save(b)
	}
	l.dirty, l.saveErr = err != nil, err
}

// Flush saves counts that rose since the last save, if any. It is called at most
// once a second.
func (l *Ledger) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dirty {
		l.save()
	}
	return l.saveErr
}

// Dirty reports whether there is something to Flush.
func (l *Ledger) Dirty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dirty
}
