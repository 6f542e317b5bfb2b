package ekslogs

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"

	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

func TestPlainLinesAreOneForEachChange(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(term.New(&b, nil, term.Auto), false, []string{"a"})
	p.phase("a", "collecting")
	p.phase("a", "collecting")
	p.phase("a", "downloading")
	p.bytes("a", 10, 20)
	p.remark("a", "mind\x1b[2J the gap")
	failed, items := 2, 300
	p.end(&Result{Node: "a", State: StateSuccess, File: "a-logs.tar.gz", Bytes: 3 << 20, Errors: &failed, Items: &items})
	p.close()
	want := "  a: collecting\n  a: downloading\n! a: mind the gap\n✔ a: a-logs.tar.gz, 3.0 MiB, 2 of 300 items failed\n"
	if b.String() != want {
		t.Errorf("wrote\n%q, want\n%q", b.String(), want)
	}
}

func TestQuietTellsOfFailuresOnly(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(term.New(&b, nil, term.Auto), true, []string{"a"})
	p.phase("a", "collecting")
	p.end(&Result{Node: "a", State: StateSuccess})
	p.end(&Result{Node: "b", State: StateFailed, Error: "no room"})
	p.close()
	if want := "✘ b: no room\n"; b.String() != want {
		t.Errorf("wrote %q, want %q", b.String(), want)
	}
}

func TestLiveLinesShowPhaseBytesAndRate(t *testing.T) {
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := pty.Setsize(tty, &pty.Winsize{Cols: 80, Rows: 24}); err != nil {
		t.Fatal(err)
	}
	p := newLiveProgress(term.New(tty, []string{"TERM=xterm-256color"}, term.Auto), []string{"a", "bb", "c"}, 2)
	p.phase("a", "downloading")
	p.phase("bb", "collecting")
	p.mu.Lock()
	start := time.Now()
	for i, n := range []int64{0, 5 << 20} {
		p.rows[0].rate.add(start.Add(time.Duration(i)*time.Second), n)
	}
	p.rows[0].done, p.rows[0].total = 5<<20, 20<<20
	lines := p.lines(p.rows[1].since.Add(12 * time.Second))
	p.mu.Unlock()
	p.end(&Result{Node: "bb", State: StateFailed, Error: "no room"})
	p.close()
	_ = tty.Close()
	got := ansi.Strip(strings.Join(lines, "\n"))
	want := "a   downloading  5.0 MiB of 20 MiB, 25 %, 5.0 MiB/s\nbb  collecting  12s\n0 nodes ended, 1 more to go"
	if got != want {
		t.Errorf("lines\n%s\nwant\n%s", got, want)
	}
	if ansi.Strip(lines[0]) == lines[0] {
		t.Error("no colours on a terminal that has them")
	}
	var screen bytes.Buffer
	_, _ = screen.ReadFrom(master) // ends with EIO once the other end is closed
	if !strings.Contains(ansi.Strip(screen.String()), "✘ bb: no room") {
		t.Errorf("the failure was not told: %q", screen.String())
	}
	if !strings.HasSuffix(screen.String(), ansi.EraseScreenBelow) {
		t.Errorf("live lines were left on the screen: %q", screen.String())
	}
}
