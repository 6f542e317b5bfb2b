package monitor

import (
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// memory is a store of checkpoints without a disk.
type memory map[string]string

func (m memory) Get(k string) string { return m[k] }
func (m memory) Set(k, v string)     { m[k] = v }

// holder holds each finding back until due.
type holder struct {
	lines
	due  time.Time
	held []health.Finding
}

func (h *holder) Detect(r host.Record) []health.Finding {
	h.held = append(h.held, h.lines.Detect(r)...)
	return nil
}

func (h *holder) Due() time.Time {
	if len(h.held) == 0 {
		return time.Time{}
	}
	return h.due
}

func (h *holder) Flush(now time.Time) []health.Finding {
	if !now.IsZero() && now.Before(h.due) {
		return nil
	}
	out := h.held
	h.held = nil
	return out
}

func TestCheckpointsWaitForFindingsThatAreHeldBack(t *testing.T) {
	m := newTestMonitor(t, t.TempDir(), nil)
	d := &holder{due: time.Now().Add(longestHold)}
	m.detector = d
	read := func(message, position string) {
		t.Helper()
		if err := m.handle(host.Record{Message: message, Position: position}); err != nil {
			t.Fatal(err)
		}
		m.positions.Set("kmsg", position) // as a source does
	}
	read("nothing", "kmsg/b/1")
	read("FilesystemShutdown", "kmsg/b/2")
	read("nothing", "kmsg/b/3")
	if got := m.checkpoints.Get("kmsg"); got != "kmsg/b/1" || m.findings() != "" {
		t.Errorf("checkpoint %q with findings %q: a crash now loses record 2", got, m.findings())
	}
	if got := m.positions.Get("kmsg"); got != "kmsg/b/3" {
		t.Errorf("a source that reopens its log goes on at %q", got)
	}
	d.due = time.Now()
	m.flushDetector()
	if got := m.checkpoints.Get("kmsg"); got != "kmsg/b/3" || m.findings() != "FilesystemShutdown/" {
		t.Errorf("checkpoint %q with findings %q", got, m.findings())
	}
}

func TestWhatWasHeldBackIsReadAgainByTheNextDetector(t *testing.T) {
	m := newTestMonitor(t, t.TempDir(), nil)
	m.checkpoints.Set("kmsg", "kmsg/b/1")
	m.positions.hold(true)
	m.positions.Set("kmsg", "kmsg/b/2")
	m.positions.drop()
	if got := m.positions.Get("kmsg"); got != "kmsg/b/1" {
		t.Errorf("reading goes on after %q", got)
	}
}

func TestALogThatNeverRestsMovesItsCheckpointOn(t *testing.T) {
	store := memory{}
	h := newHoldback(store)
	now := time.Unix(1000, 0)
	h.now = func() time.Time { return now }
	h.hold(true)
	h.Set("kmsg", "1")
	now = now.Add(longestHold)
	h.hold(true)
	h.Set("kmsg", "2")
	if len(store) != 0 {
		t.Errorf("%v: record 1 may be held back since a moment ago", store)
	}
	now = now.Add(longestHold)
	h.Set("kmsg", "3")
	if store["kmsg"] != "1" {
		t.Errorf("%v, want 1, which was handled before the last generation began", store)
	}
	h.hold(false)
	if store["kmsg"] != "3" || len(h.old)+len(h.young) != 0 {
		t.Errorf("%v, old %v, young %v", store, h.old, h.young)
	}
}

func TestAClockThatIsSteppedBackHoldsNothingBack(t *testing.T) {
	m := newTestMonitor(t, t.TempDir(), nil)
	m.detector = &holder{due: time.Now().Add(time.Hour)} // held a moment before the step
	if err := m.handle(host.Record{Message: "FilesystemShutdown", Position: "kmsg/b/1"}); err != nil {
		t.Fatal(err)
	}
	m.flushDetector()
	if got := m.findings(); got != "FilesystemShutdown/" {
		t.Errorf("findings %q", got)
	}
}
