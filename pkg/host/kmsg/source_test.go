package kmsg

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
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const boot = "0b0e8c5c-0000-4000-8000-00000000000a"

func fixture(t *testing.T) *host.Host {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "proc/sys/kernel/random")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "boot_id"), []byte(boot+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ring is a kernel of our own: its records in order, where a string is a record and
// an error is what read(2) says instead.
type ring struct {
	mu    sync.Mutex
	reads []any
}

func (r *ring) open() (device, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &ringDevice{r: r, left: slices.Clone(r.reads)}, nil
}

type ringDevice struct {
	r    *ring
	left []any
}

func (d *ringDevice) Close() error { return nil }

func (d *ringDevice) next(ctx context.Context, p []byte, idle func() error) (int, bool, error) {
	if len(d.left) == 0 {
		if err := idle(); err != nil {
			return 0, true, err
		}
		<-ctx.Done()
		return 0, true, ctx.Err()
	}
	x := d.left[0]
	d.left = d.left[1:]
	if err, ok := x.(error); ok {
		return 0, false, err
	}
	if s := x.(string); len(s) > len(p) {
		return 0, false, unix.EINVAL
	}
	return copy(p, x.(string)), false, nil
}

func rec(seq int, msg string) string { return fmt.Sprintf("2,%d,%d,-;%s\n", seq, seq*1000, msg) }

// memory is a checkpoint store without a disk.
type memory map[string]string

func (m memory) Get(k string) string { return m[k] }
func (m memory) Set(k, v string)     { m[k] = v }

// collect runs s until n records came, and returns their messages.
func collect(t *testing.T, s *Source, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	s.retry = host.Backoff{First: time.Millisecond}
	err := s.Run(ctx, func(r host.Record) error {
		got = append(got, r.Message)
		if len(got) == n {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return got
}

func TestSourceCountsWhatTheRingOverran(t *testing.T) {
	r := &ring{reads: []any{rec(10, "a"), rec(11, "b"), unix.EPIPE, rec(17, "c"), rec(18, "d")}}
	s := New(Options{Host: fixture(t)})
	s.open = r.open
	if d := cmp.Diff([]string{"a", "b", "c", "d"}, collect(t, s, 4)); d != "" {
		t.Error(d)
	}
	if got := s.Status().Lost; got != 5 {
		t.Errorf("Lost = %d, want 5 (12 to 16)", got)
	}
}

func TestSourceGoesOnFromTheCheckpoint(t *testing.T) {
	m := memory{Name: "kmsg/" + boot + "/11"}
	r := &ring{reads: []any{rec(10, "a"), rec(11, "b"), rec(12, "c")}}
	s := New(Options{Host: fixture(t), Checkpoints: m})
	s.open = r.open
	if d := cmp.Diff([]string{"c"}, collect(t, s, 1)); d != "" {
		t.Error(d)
	}
	if got, want := m[Name], "kmsg/"+boot+"/12"; got != want {
		t.Errorf("checkpoint %q, want %q", got, want)
	}
	if st := s.Status(); st.Lost != 0 || st.Records != 1 {
		t.Errorf("status %+v", st)
	}
}

func TestSourceCountsWhatWasOverwrittenWhileTheAgentWasDown(t *testing.T) {
	r := &ring{reads: []any{rec(20, "a")}}
	s := New(Options{Host: fixture(t), Checkpoints: memory{Name: "kmsg/" + boot + "/11"}})
	s.open = r.open
	collect(t, s, 1)
	if got := s.Status().Lost; got != 8 {
		t.Errorf("Lost = %d, want 8 (12 to 19)", got)
	}
}

func TestSourceBeginsThisBootWhenTheCheckpointIsOfAnother(t *testing.T) {
	r := &ring{reads: []any{rec(1, "a"), rec(2, "b")}}
	s := New(Options{Host: fixture(t), Checkpoints: memory{Name: "kmsg/another/1"}})
	s.open = r.open
	if d := cmp.Diff([]string{"a", "b"}, collect(t, s, 2)); d != "" {
		t.Error(d)
	}
}

func TestSourceRereadsWhenAMachineIsRestoredFromASnapshot(t *testing.T) {
	r := &ring{reads: []any{rec(1, "a"), rec(2, "b")}}
	s := New(Options{Host: fixture(t), Checkpoints: memory{Name: "kmsg/" + boot + "/900"}})
	s.open = r.open
	if d := cmp.Diff([]string{"a", "b"}, collect(t, s, 2)); d != "" {
		t.Error(d)
	}
}

func TestSourceFromSeq(t *testing.T) {
	r := &ring{reads: []any{rec(1, "a"), rec(2, "b"), rec(3, "c")}}
	s := New(Options{Host: fixture(t), FromSeq: 3})
	s.open = r.open
	if d := cmp.Diff([]string{"c"}, collect(t, s, 1)); d != "" {
		t.Error(d)
	}
}

func TestSourceGrowsItsBufferAndLosesNothing(t *testing.T) {
	long := strings.Repeat("x", 3*firstBuffer)
	r := &ring{reads: []any{rec(1, "a"), rec(2, long), rec(3, "c")}}
	s := New(Options{Host: fixture(t)})
	s.open = r.open
	if d := cmp.Diff([]string{"a", long, "c"}, collect(t, s, 3)); d != "" {
		t.Error(d)
	}
	if got := s.Status().Lost; got != 0 {
		t.Errorf("Lost = %d, want 0", got)
	}
}

func TestSourceCountsARecordThatNoBufferHolds(t *testing.T) {
	r := &ring{reads: []any{rec(1, "a"), rec(2, strings.Repeat("x", maxBuffer)), rec(3, "c")}}
	s := New(Options{Host: fixture(t)})
	s.open = r.open
	if d := cmp.Diff([]string{"a", "c"}, collect(t, s, 2)); d != "" {
		t.Error(d)
	}
	if got := s.Status().Lost; got != 1 {
		t.Errorf("Lost = %d, want 1", got)
	}
}

func TestSourceIsBlindWhileTheLogCannotBeReadAndThenGoesOn(t *testing.T) {
	r := &ring{reads: []any{rec(1, "a")}}
	s := New(Options{Host: fixture(t)})
	tries := 0
	var seen []host.SourceStatus
	s.State().OnChange(func(st host.SourceStatus) { seen = append(seen, st) })
	s.open = func() (device, error) {
		if tries++; tries < 3 {
			return nil, unix.EPERM
		}
		return r.open()
	}
	collect(t, s, 1)
	if len(seen) == 0 || seen[0].Up || !strings.Contains(seen[0].Blind, "operation not permitted") {
		t.Errorf("changes %+v, want blind first, with the reason", seen)
	}
	if st := s.Status(); st.Restarts != 2 {
		t.Errorf("Restarts = %d, want 2", st.Restarts)
	}
}

func TestSourceEndsWithTheHandlersError(t *testing.T) {
	r := &ring{reads: []any{rec(1, "a"), rec(2, "b")}}
	m := memory{}
	s := New(Options{Host: fixture(t), Checkpoints: m})
	s.open = r.open
	want := errors.New("ledger is gone")
	if err := s.Run(t.Context(), func(host.Record) error { return want }); !errors.Is(err, want) {
		t.Errorf("Run = %v, want %v", err, want)
	}
	if len(m) != 0 {
		t.Errorf("checkpoint %v moved past a record that was not handled", m)
	}
}

// TestFileDeviceWaitsInThePoller feeds a socket that keeps record boundaries, as the
// kernel's device does.
func TestFileDeviceWaitsInThePoller(t *testing.T) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	writer := os.NewFile(uintptr(fds[1]), "writer")
	defer writer.Close()
	s := New(Options{Host: fixture(t)})
	s.open = func() (device, error) { return newFileDevice(os.NewFile(uintptr(fds[0]), "kmsg")) }
	s.clock.wall = func() time.Time { return time.Unix(5000, 0) }
	s.clock.uptime = func() time.Duration { return 100 * time.Second }
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan host.Record)
	done := make(chan error)
	go func() {
		done <- s.Run(ctx, func(r host.Record) error { got <- r; return nil })
	}()
	for !s.Status().Up {
		time.Sleep(time.Millisecond)
	}
	for i := range 3 {
		if _, err := io.WriteString(writer, rec(i, "m")); err != nil {
			t.Fatal(err)
		}
		if r := <-got; !r.Kernel || r.Position != fmt.Sprintf("kmsg/%s/%d", boot, i) || !r.At.Equal(time.Unix(5000, 0)) {
			t.Errorf("record %+v", r)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run = %v after its context ended, want nil", err)
	}
}

func TestClockDatesWaitedRecordsNowAndOthersByTheirAge(t *testing.T) {
	now, uptime := time.Unix(10_000, 0), 1000*time.Second
	c := &clock{wall: func() time.Time { return now }, uptime: func() time.Duration { return uptime }}
	if got, want := c.at(400*time.Second, false), now.Add(-600*time.Second); !got.Equal(want) {
		t.Errorf("backlog: %v, want %v", got, want)
	}
	if got := c.at(1001*time.Second, false); !got.Equal(now) {
		t.Errorf("a record from the future: %v, want now", got)
	}
	// The kernel's clock is 7 s behind; a record that was waited for shows it.
	if got := c.at(993*time.Second, true); !got.Equal(now) {
		t.Errorf("live: %v, want now", got)
	}
	if got, want := c.at(990*time.Second, false), now.Add(-3*time.Second); !got.Equal(want) {
		t.Errorf("after skew was seen: %v, want %v", got, want)
	}
	// The wall clock is stepped back an hour: new records follow it.
	now = now.Add(-time.Hour)
	if got := c.at(994*time.Second, true); !got.Equal(now) {
		t.Errorf("after a step: %v, want %v", got, now)
	}
}
