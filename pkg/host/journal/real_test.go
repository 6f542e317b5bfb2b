package journal

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// realHost is this machine, if it has a journalctl and what else a test needs.
func realHost(t *testing.T, programs ...string) *host.Host {
	t.Helper()
	h, err := host.New("/")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(programs, "journalctl") {
		if _, err := h.LookPath(p); err != nil {
			t.Skipf("needs the program %s: %v", p, err)
		}
	}
	return h
}

// writeJournal makes the entries of first to last into a journal file in dir, in
// systemd's export format.
func writeJournal(t *testing.T, dir, name, boot string, first, last int) {
	t.Helper()
	const remote = "/usr/lib/systemd/systemd-journal-remote"
	var b strings.Builder
	for i := first; i <= last; i++ {
		fmt.Fprintf(&b, "__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=%s\n_TRANSPORT=stdout\n_SYSTEMD_UNIT=kubelet.service\nMESSAGE=m%d\n\n",
			1796078000000000+i*1000, 100000000+i*1000, boot, i)
	}
	cmd := exec.Command(remote, "--output="+filepath.Join(dir, name+".journal"), "-")
	cmd.Stdin = strings.NewReader(b.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

func bootOf(t *testing.T, h *host.Host) string {
	t.Helper()
	boot, err := h.BootID()
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(boot, "-", "")
}

func TestRealJournalGoesOnAfterARestartAndAVacuum(t *testing.T) {
	h := realHost(t, "/usr/lib/systemd/systemd-journal-remote")
	dir, m := t.TempDir(), memory{}
	writeJournal(t, dir, "one", bootOf(t, h), 1, 5)
	source := func() *Source {
		return New(Options{Host: h, Units: []string{"kubelet.service"}, Checkpoints: m, Args: []string{"--directory=" + dir}})
	}
	if d := cmp.Diff([]string{"m1", "m2", "m3"}, collect(t, source(), 3)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"m4", "m5"}, collect(t, source(), 2)); d != "" {
		t.Errorf("after a restart: %s", d)
	}
	// Everything that was read is vacuumed, and more than that.
	if err := os.Remove(filepath.Join(dir, "one.journal")); err != nil {
		t.Fatal(err)
	}
	writeJournal(t, dir, "two", bootOf(t, h), 20, 21)
	s := source()
	if d := cmp.Diff([]string{"m20", "m21"}, collect(t, s, 2)); d != "" {
		t.Errorf("after a vacuum: %s", d)
	}
	if s.Status().Lost == 0 {
		t.Error("the gap was not counted")
	}
}

func TestRealJournalReadsABootThatIsOver(t *testing.T) {
	h := realHost(t, "/usr/lib/systemd/systemd-journal-remote")
	dir, m := t.TempDir(), memory{}
	const old = "11111111111111111111111111111111"
	writeJournal(t, dir, "old", old, 1, 3)
	writeJournal(t, dir, "new", bootOf(t, h), 10, 11)
	m[Name] = "journal/" + cursorInFile(t, h, dir, "m1")
	s := New(Options{Host: h, Units: []string{"kubelet.service"}, Checkpoints: m, Args: []string{"--directory=" + dir}})
	if d := cmp.Diff([]string{"m2", "m3", "m10", "m11"}, collect(t, s, 4)); d != "" {
		t.Error(d)
	}
}

func cursorInFile(t *testing.T, h *host.Host, dir, message string) string {
	t.Helper()
	var found string
	var d decoder
	out := &lines{tooLong: func() {}, handle: func(line []byte) error {
		var e entry
		if d.decode(line, &e) == nil && string(e.message) == message {
			found = string(e.cursor)
		}
		return nil
	}}
	_, err := h.Run(t.Context(), host.Command{Argv: []string{"journalctl", "-o", "json", "--directory=" + dir}, Stdout: out})
	if err != nil || found == "" {
		t.Fatalf("no entry %s: %v", message, err)
	}
	return found
}

func TestRealEmptyJournalIsBlind(t *testing.T) {
	h := realHost(t)
	s := New(Options{Host: h, Units: []string{"kubelet.service"}, Args: []string{"--directory=" + t.TempDir()}})
	if why := s.blind(t.Context()); why == "" {
		t.Error("an empty journal is not blind")
	}
}

// TestRealServiceIsFollowedByItsUnit writes as a service of its own cgroup to the
// machine's journald.
func TestRealServiceIsFollowedByItsUnit(t *testing.T) {
	h := realHost(t, "systemd-cat", "sh")
	unit := fmt.Sprintf("ekslogs-test-%d.service", os.Getpid())
	cgroup := "/sys/fs/cgroup/unified/system.slice/" + unit
	if err := os.MkdirAll(cgroup, 0o755); err != nil {
		t.Skipf("needs to make cgroups: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(cgroup) })
	// A journald that has ended leaves its socket behind: only a connection tells.
	conn, err := net.Dial("unix", "/run/systemd/journal/stdout")
	if err != nil {
		t.Skipf("needs a running journald: %v", err)
	}
	conn.Close()
	s := New(Options{Host: h, Units: []string{unit}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := make(chan host.Record, 16)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, func(r host.Record) error { got <- r; return nil }) }()
	// One writer that lives on: journald looks up a writer's unit when it reads the
	// line, and a process that has ended has none.
	writer := exec.CommandContext(ctx, "sh", "-c", "echo $$ > "+cgroup+"/cgroup.procs && exec systemd-cat -t pretender -p err cat")
	stdin, err := writer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { stdin.Close(); _ = writer.Wait() }()
	for i := range 3 {
		fmt.Fprintf(stdin, "hello \"%d\"\n", i)
		select {
		case r := <-got:
			if r.Unit != unit || r.Message != fmt.Sprintf(`hello "%d"`, i) || r.Priority != 3 || r.FromManager || time.Since(r.At) > time.Minute {
				t.Errorf("record %+v", r)
			}
		case <-ctx.Done():
			t.Fatalf("the record did not come; status %+v", s.Status())
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
