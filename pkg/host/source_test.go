package host

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSourceStateTellsOfChangesOnce(t *testing.T) {
	s := NewSourceState("kmsg")
	var changes []SourceStatus
	s.OnChange(func(st SourceStatus) { changes = append(changes, st) })
	if st := s.Status(); st.Up || st.Blind != "" || st.Absent || !st.LastRecord.IsZero() || st.Name != "kmsg" {
		t.Errorf("before the start: %+v", st)
	}
	s.SetUp()
	s.SetUp()
	s.AddLost(0)
	s.AddLost(3)
	s.SetBlind("no permission")
	s.SetBlind("no permission")
	s.SetAbsent()
	if len(changes) != 4 {
		t.Fatalf("%d changes, want 4: %+v", len(changes), changes)
	}
	if c := changes[2]; c.Up || c.Blind != "no permission" || c.Lost != 3 {
		t.Errorf("blind: %+v", c)
	}
	if c := changes[3]; c.Up || c.Blind != "" || !c.Absent {
		t.Errorf("absent: %+v", c)
	}
	now := time.Now()
	s.Saw(now)
	s.AddRestart()
	if st := s.Status(); st.Records != 1 || st.Restarts != 1 || !st.LastRecord.Equal(now) {
		t.Errorf("status %+v", st)
	}
}

func TestBackoffDoublesAndEndsWithItsContext(t *testing.T) {
	b := Backoff{First: time.Millisecond, Max: 3 * time.Millisecond}
	for _, want := range []time.Duration{2, 4, 6, 6} {
		if !b.Wait(t.Context()) || b.next != want*time.Millisecond {
			t.Errorf("next %v, want %vms", b.next, want)
		}
	}
	b.Reset()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.First, b.Max = time.Hour, time.Hour
	if b.Wait(ctx) {
		t.Error("Wait returned true though its context ended")
	}
}

func TestBoot(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.BootID(); err == nil {
		t.Error("a boot id without /proc")
	}
	write("proc/sys/kernel/random/boot_id", "ef0cdef8-c192-4973-a9c1-ad3c96c8e62d\n")
	if id, err := h.BootID(); err != nil || id != "ef0cdef8-c192-4973-a9c1-ad3c96c8e62d" {
		t.Errorf("BootID = %q, %v", id, err)
	}
	write("proc/stat", "cpu 1 2\nintr 5\nbtime 1796078000\nprocesses 3\n")
	if at, err := h.BootTime(); err != nil || !at.Equal(time.Unix(1796078000, 0)) {
		t.Errorf("BootTime = %v, %v", at, err)
	}
	write("proc/stat", "cpu 1 2\n")
	if at, err := h.BootTime(); err == nil {
		t.Errorf("BootTime = %v without btime", at)
	}
}

func TestReplaceFileReplacesWholeAndFollowsNoPlantedLink(t *testing.T) {
	dir := t.TempDir()
	name, victim := filepath.Join(dir, "state"), filepath.Join(dir, "victim")
	for _, f := range []string{name, victim} {
		if err := os.WriteFile(f, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(victim, name+".tmp"); err != nil {
		t.Fatal(err)
	}
	if err := ReplaceFile(name, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(name); string(b) != "new" {
		t.Errorf("content %q", b)
	}
	if b, _ := os.ReadFile(victim); string(b) != "old" {
		t.Errorf("the link was followed: %q", b)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left behind: %v", entries)
	}
	if err := ReplaceFile(filepath.Join(dir, "none", "state"), nil); err == nil {
		t.Error("no error without the folder")
	}
}
