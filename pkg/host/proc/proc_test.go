package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/google/go-cmp/cmp"
)

const tail = " 4242 4242 0 -1 4194624 0 0 0 0 1 2 0 0 20 0 1 0 %d 1000 10 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 7 0 0 100 200 300 400 500 5000 8200 0\n"

func line(pid int, comm string, state byte, start int) string {
	return fmt.Sprintf("%d (%s) %c 1"+tail, pid, comm, state, start)
}

func TestParseStat(t *testing.T) {
	for _, comm := range []string{"sh", "tmux: server (1)", "a) S 9 (b", ")", "", "x\ny"} {
		got, err := ParseStat([]byte(line(4242, comm, 'S', 100)))
		want := Stat{PID: 4242, Comm: comm, State: 'S', PPID: 1, Start: 100, BlockWait: 7, EnvSize: 3200}
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Errorf("%q: %v %s", comm, err, d)
		}
	}
	for _, bad := range []string{"", "1", "1 (a", "x (a) S 1 1", "1 (a) S 1 1\n", "1 (a)"} {
		if s, err := ParseStat([]byte(bad)); err == nil {
			t.Errorf("ParseStat(%q) = %+v, want an error", bad, s)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte(line(1, "a) (b", 'Z', 5)))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = ParseStat(b) })
}

func fixture(t *testing.T, files map[string]string) *host.Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTableIsSharedWhileItIsFresh(t *testing.T) {
	h := fixture(t, map[string]string{
		"proc/1/stat": line(1, "init", 'S', 1), "proc/77/stat": line(77, "z", 'Z', 9), "proc/78/stat": "garbage",
		"proc/stat": "cpu 1 2 3\n", "proc/self/stat": line(5, "x", 'R', 1), "proc/99/status": "ended",
	})
	c := NewCache(h)
	a, err := c.Table(t.Context(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range a.Processes {
		pids = append(pids, p.PID)
	}
	slices.Sort(pids)
	if d := cmp.Diff([]int{1, 77}, pids); d != "" {
		t.Error(d)
	}
	if b, _ := c.Table(t.Context(), time.Hour); b != a {
		t.Error("a fresh table was read again")
	}
	if b, _ := c.Table(t.Context(), 0); b == a {
		t.Error("an old table was not read again")
	}
}

func TestWalkThreads(t *testing.T) {
	h := fixture(t, map[string]string{
		"proc/7/task/7/stat": line(7, "main", 'S', 1), "proc/7/task/8/stat": line(8, "io", 'D', 2), "proc/9/stat": "no task folder",
	})
	got := map[int]int{}
	if err := WalkThreads(t.Context(), h, func(pid int, s Stat) { got[s.PID] = pid }); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[int]int{7: 7, 8: 7}, got); d != "" {
		t.Error(d)
	}
}

func TestWalkStopsWithItsContext(t *testing.T) {
	h := fixture(t, map[string]string{"proc/1/stat": line(1, "init", 'S', 1)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewCache(h).Table(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("Table = %v", err)
	}
}

func TestPacerRestsAfterASlice(t *testing.T) {
	p := &pacer{since: time.Now().Add(-slice)}
	before := p.since
	if err := p.step(t.Context()); err != nil || !p.since.After(before) {
		t.Errorf("step = %v, since moved %v", err, p.since.Sub(before))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.since = before
	if err := p.step(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("step = %v after its context ended", err)
	}
}

func TestReadThread(t *testing.T) {
	h := fixture(t, map[string]string{"proc/7/task/8/stat": line(8, "io", 'D', 2)})
	if s, err := ReadThread(h, 7, 8); err != nil || s.State != 'D' || s.Start != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := ReadThread(h, 7, 9); err == nil {
		t.Error("a thread that has ended was read")
	}
}

func TestParseLoad(t *testing.T) {
	got, err := ParseLoad("7.29 8.00 6.20 7/170 4115")
	if err != nil || got != (Load{Avg1: 7.29, Threads: 170}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "1 2 3", "x 2 3 1/2 3", "1 2 3 4 5"} {
		if _, err := ParseLoad(bad); err == nil {
			t.Errorf("ParseLoad(%q) found no fault", bad)
		}
	}
}

func TestThisMachinesOwnProcesses(t *testing.T) {
	h, err := host.New("/")
	if err != nil {
		t.Fatal(err)
	}
	table, err := NewCache(h).Table(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(table.Processes, func(s Stat) bool { return s.PID == os.Getpid() })
	if i < 0 {
		t.Fatal("this process is not in the table")
	}
	if s := table.Processes[i]; s.PPID != os.Getppid() || s.Start == 0 || s.EnvSize == 0 {
		t.Errorf("%+v", s)
	}
}
