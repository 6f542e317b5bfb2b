package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Handler takes the records of a source, one at a time and in the source's
// order. The source goes on (and moves its checkpoint) only when the handler has
// returned. An error ends the source's Run with that error.
type Handler func(Record) error

// A LogSource reads one log and hands its records on.
type LogSource interface {
	// Name is stable and unique among the sources of an agent: "kmsg", "journal",
	// "file:/var/log/cron". It is the key of the source's checkpoint.
	Name() string
	// Run reads until ctx ends, which returns nil, or until the handler returns an
	// error, which Run returns. What goes wrong with the log itself makes the source
	// blind, and Run tries again by itself. Run may be called once.
	Run(ctx context.Context, handle Handler) error
	// Status tells how the source is doing. It never blocks on the log.
	Status() SourceStatus
}

// Checkpoints keeps how far each source has been read. Positions are those of
// Record.Position, or "" for none.
type Checkpoints interface {
	// Get returns the position that was set last, by this process or an earlier one.
	Get(source string) string
	// Set says that everything up to and including position has been handled.
	Set(source, position string)
}

// SourceStatus is a snapshot of how a source of records is doing.
type SourceStatus struct {
	// Name is the source's name.
	Name string
	// Up says that the source can be read. A source that has not started is not up.
	Up bool
	// Blind says in words why the source cannot be read; empty while it is up, and
	// before it has tried.
	Blind string
	// Absent says that the host has no such log, and that nothing is wrong with that
	// (a file that need not exist). An absent source is neither up nor blind.
	Absent bool
	// Since is when Up, Blind or Absent last changed, by the wall clock.
	Since time.Time
	// Records is how many records were handed on.
	Records uint64
	// Lost is how many records are known to have been lost: overrun in the kernel's
	// ring, or vacuumed from the journal (an upper bound, since the journal numbers
	// the records of all units together) before they were read.
	Lost uint64
	// Restarts is how often the reader was started again after an error.
	Restarts uint64
	// LastRecord is when the last record was handed on, by the wall clock; zero when
	// there was none.
	LastRecord time.Time
}

// SourceState keeps a SourceStatus. The zero value is ready but for its name; it is
// safe for concurrent use, and counting a record takes no lock.
type SourceState struct {
	name     string
	onChange atomic.Pointer[func(SourceStatus)]

	records, lost, restarts atomic.Uint64
	last                    atomic.Int64 // UnixNano

	mu     sync.Mutex
	up     bool
	absent bool
	blind  string
	since  time.Time
}

// NewSourceState returns the state of a source that has not started.
func NewSourceState(name string) *SourceState {
	return &SourceState{name: name, since: time.Now()}
}

// OnChange makes f the function that is called, outside any lock, after the source
// went up, blind or absent, or lost records. f must not block.
func (s *SourceState) OnChange(f func(SourceStatus)) { s.onChange.Store(&f) }

// Status returns a snapshot.
func (s *SourceState) Status() SourceStatus {
	s.mu.Lock()
	st := SourceStatus{Name: s.name, Up: s.up, Absent: s.absent, Blind: s.blind, Since: s.since}
	s.mu.Unlock()
	st.Records, st.Lost, st.Restarts = s.records.Load(), s.lost.Load(), s.restarts.Load()
	if ns := s.last.Load(); ns != 0 {
		st.LastRecord = time.Unix(0, ns)
	}
	return st
}

// SetUp says that the source can be read.
func (s *SourceState) SetUp() { s.set(true, false, "") }

// SetBlind says why the source cannot be read.
func (s *SourceState) SetBlind(why string) { s.set(false, false, why) }

// SetAbsent says that the host has no such log and need not have it.
func (s *SourceState) SetAbsent() { s.set(false, true, "") }

func (s *SourceState) set(up, absent bool, blind string) {
	s.mu.Lock()
	changed := s.up != up || s.absent != absent || s.blind != blind
	if changed {
		s.up, s.absent, s.blind, s.since = up, absent, blind, time.Now()
	}
	s.mu.Unlock()
	if changed {
		s.changed()
	}
}

// Saw counts a record that was handed on at now.
func (s *SourceState) Saw(now time.Time) {
	s.records.Add(1)
	s.last.Store(now.UnixNano())
}

// AddLost counts n records that were lost.
func (s *SourceState) AddLost(n uint64) {
	if n > 0 {
		s.lost.Add(n)
		s.changed()
	}
}

// AddRestart counts a restart of the reader.
func (s *SourceState) AddRestart() { s.restarts.Add(1) }

func (s *SourceState) changed() {
	if f := s.onChange.Load(); f != nil {
		(*f)(s.Status())
	}
}
