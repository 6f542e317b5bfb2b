package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journald is a journal of our own, and the journalctl that reads it: it enters at a
// cursor as sd_journal_seek_cursor does, at the entry or else after the gap.
type journald struct {
	mu       sync.Mutex
	entries  []int // sequence numbers
	dieAfter int   // the follower ends after so many entries, once
	silent   bool  // the follower says nothing, once
	probeErr error
	calls    [][]string
}

// bootID is that of the host; without dashes, of the journal.
const bootID = "0b0e8c5c-0000-4000-8000-00000000000a"

func cursorOf(seq int) string {
	return fmt.Sprintf("s=a;i=%x;b=%s;m=%x;t=%x;x=%x", seq, strings.ReplaceAll(bootID, "-", ""), seq, seq, seq)
}

func lineOf(seq int) string {
	return fmt.Sprintf(`{"__CURSOR":"%s","MESSAGE":"m%d","_SYSTEMD_UNIT":"kubelet.service"}`+"\n", cursorOf(seq), seq)
}

func (j *journald) Run(ctx context.Context, c host.Command) (host.Result, error) {
	j.mu.Lock()
	j.calls = append(j.calls, c.Argv)
	entries := slices.Clone(j.entries)
	dieAfter, silent := j.dieAfter, j.silent
	follow := slices.Contains(c.Argv, "--follow")
	if follow {
		j.dieAfter, j.silent = 0, false
	}
	j.mu.Unlock()
	if j.probeErr != nil {
		io.WriteString(c.Stderr, "a complaint\n")
		return host.Result{ExitCode: 1}, j.probeErr
	}
	atCursor := false
	for _, a := range c.Argv {
		if cur, ok := strings.CutPrefix(a, "--cursor="); ok {
			atCursor = true
			at, _ := parseCursor(cur)
			entries = slices.DeleteFunc(entries, func(seq int) bool { return seq < int(at.seqnum) })
		}
	}
	if !follow {
		if len(entries) > 0 {
			show := entries[len(entries)-1]
			if atCursor {
				show = entries[0]
			}
			io.WriteString(c.Stdout, lineOf(show))
		}
		return host.Result{}, nil
	}
	for i, seq := range entries {
		if silent {
			break
		}
		if dieAfter > 0 && i == dieAfter {
			io.WriteString(c.Stderr, "killed\n")
			return host.Result{ExitCode: -1}, errors.New("journalctl: signal: killed")
		}
		if _, err := io.WriteString(c.Stdout, lineOf(seq)); err != nil {
			return host.Result{ExitCode: -1}, err
		}
	}
	<-ctx.Done()
	return host.Result{ExitCode: -1, TimedOut: true}, ctx.Err()
}

type memory map[string]string

func (m memory) Get(k string) string { return m[k] }
func (m memory) Set(k, v string)     { m[k] = v }

func newSource(t *testing.T, j *journald, m memory) *Source {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "proc/sys/kernel/random"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "proc/sys/kernel/random/boot_id"), []byte(bootID+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Host: h, Units: []string{"kubelet.service"}, Checkpoints: m})
	s.run, s.retry = j, host.Backoff{First: time.Millisecond}
	return s
}

// collect runs s until n records came.
func collect(t *testing.T, s *Source, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	err := s.Run(ctx, func(r host.Record) error {
		if got = append(got, r.Message); len(got) == n {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return got
}

func TestSourceBeginsWithThisBootAndRemembers(t *testing.T) {
	j, m := &journald{entries: []int{1, 2, 3}}, memory{}
	if d := cmp.Diff([]string{"m1", "m2", "m3"}, collect(t, newSource(t, j, m), 3)); d != "" {
		t.Error(d)
	}
	if got, want := m[Name], "journal/"+cursorOf(3); got != want {
		t.Errorf("checkpoint %q, want %q", got, want)
	}
	want := []string{
		"journalctl", "--output=json", "--all", "--no-pager", "--output-fields=" + outputFields, "--boot", "--follow", "--no-tail",
		"_SYSTEMD_UNIT=kubelet.service", "+", "_PID=1", "UNIT=kubelet.service",
	}
	if d := cmp.Diff(want, j.calls[len(j.calls)-1]); d != "" {
		t.Error(d)
	}
}

func TestSourceGoesOnAfterTheCheckpoint(t *testing.T) {
	j := &journald{entries: []int{1, 2, 3, 4}}
	s := newSource(t, j, memory{Name: "journal/" + cursorOf(2)})
	if d := cmp.Diff([]string{"m3", "m4"}, collect(t, s, 2)); d != "" {
		t.Error(d)
	}
	if got := s.Status().Lost; got != 0 {
		t.Errorf("Lost = %d, want 0", got)
	}
}

func TestSourceCountsWhatWasVacuumed(t *testing.T) {
	j := &journald{entries: []int{8, 9}}
	s := newSource(t, j, memory{Name: "journal/" + cursorOf(2)})
	if d := cmp.Diff([]string{"m8", "m9"}, collect(t, s, 2)); d != "" {
		t.Error(d)
	}
	if got := s.Status().Lost; got != 5 {
		t.Errorf("Lost = %d, want 5 (3 to 7)", got)
	}
}

func TestSourceReadsThisBootWhenTheJournalEndsBeforeTheCheckpoint(t *testing.T) {
	j := &journald{entries: []int{1, 2}}
	s := newSource(t, j, memory{Name: "journal/" + cursorOf(900)})
	if d := cmp.Diff([]string{"m1", "m2"}, collect(t, s, 2)); d != "" {
		t.Error(d)
	}
}

func TestSourceOutlivesItsChild(t *testing.T) {
	j := &journald{entries: []int{1, 2, 3, 4}, dieAfter: 2}
	s := newSource(t, j, memory{})
	var changes []host.SourceStatus
	s.State().OnChange(func(st host.SourceStatus) { changes = append(changes, st) })
	if d := cmp.Diff([]string{"m1", "m2", "m3", "m4"}, collect(t, s, 4)); d != "" {
		t.Error(d)
	}
	if st := s.Status(); st.Restarts != 1 || st.Lost != 0 || !st.Up {
		t.Errorf("status %+v, want up after one restart", st)
	}
	if len(changes) != 3 || changes[1].Blind != "journalctl: signal: killed: killed" {
		t.Errorf("changes %+v, want up, blind with the reason, up", changes)
	}
}

func TestSourceIsBlindWhenJournalctlAnswersNothing(t *testing.T) {
	j := &journald{}
	s := newSource(t, j, memory{})
	blind := make(chan string, 1)
	s.State().OnChange(func(st host.SourceStatus) { blind <- st.Blind })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx, func(host.Record) error { return nil }) }()
	why := <-blind
	if !strings.Contains(why, "journal") || s.Status().Up {
		t.Errorf("blind: %q, status %+v", why, s.Status())
	}
	j.mu.Lock()
	j.entries = []int{1}
	j.mu.Unlock()
	if why := <-blind; why != "" {
		t.Errorf("blind: %q though the journal answers now", why)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestSourceSaysWhatJournalctlComplainsAbout(t *testing.T) {
	s := newSource(t, &journald{probeErr: errors.New("journalctl: exit status 1")}, memory{})
	if got, want := s.blind(t.Context()), "journalctl: exit status 1: a complaint"; got != want {
		t.Errorf("blind = %q, want %q", got, want)
	}
}

func TestSourceRestartsAFollowerThatHoldsEntriesBack(t *testing.T) {
	j := &journald{entries: []int{1, 2}, silent: true}
	s := newSource(t, j, memory{})
	s.silence = 20 * time.Millisecond
	if d := cmp.Diff([]string{"m1", "m2"}, collect(t, s, 2)); d != "" {
		t.Error(d)
	}
}

func TestSourceEndsWithTheHandlersError(t *testing.T) {
	m := memory{}
	want := errors.New("ledger is gone")
	err := newSource(t, &journald{entries: []int{1}}, m).Run(t.Context(), func(host.Record) error { return want })
	if !errors.Is(err, want) || len(m) != 0 {
		t.Errorf("Run = %v, checkpoint %v; want %v and none", err, m, want)
	}
}

func TestMatchesAreThoseOfJournalctlsUnitOption(t *testing.T) {
	o := Options{Units: []string{"a.service", "b.service"}, Kernel: true}
	want := []string{"_SYSTEMD_UNIT=a.service", "_SYSTEMD_UNIT=b.service", "+", "_PID=1", "UNIT=a.service", "UNIT=b.service", "+", "_TRANSPORT=kernel"}
	if d := cmp.Diff(want, o.matches()); d != "" {
		t.Error(d)
	}
}

func TestCursorLost(t *testing.T) {
	at := func(s string) cursor {
		c, ok := parseCursor(s)
		if !ok {
			t.Fatalf("parseCursor(%q)", s)
		}
		return c
	}
	last := at("s=a;i=a;b=b1;m=1;t=1;x=1")
	for name, tc := range map[string]struct {
		next string
		want uint64
	}{
		"the next entry":              {"s=a;i=b;b=b1;m=2;t=2;x=2", 0},
		"a gap":                       {"s=a;i=1a;b=b1;m=2;t=2;x=2", 15},
		"a gap over a boot":           {"s=a;i=1a;b=b2;m=2;t=2;x=2", 15},
		"journal emptied, same boot":  {"s=z;i=1;b=b1;m=2;t=2;x=2", 1},
		"volatile journal, next boot": {"s=z;i=1;b=b2;m=2;t=2;x=2", 0},
	} {
		if got := last.lost(at(tc.next)); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	if _, ok := parseCursor("garbage"); ok {
		t.Error("garbage is a cursor")
	}
	if !last.same(at("s=other;i=99;b=b1;m=1;t=1;x=1")) {
		t.Error("an entry that moved from /run to /var is not recognised")
	}
}
