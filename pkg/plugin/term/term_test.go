package term

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
)

func TestCleanLetsNothingDriveTheTerminal(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"plain", "plain"},
		{"Grüße 世界 ✔", "Grüße 世界 ✔"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b]0;title\x07after", "after"},
		{"\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"a\x1b[2Jb", "ab"},
		{"one\ntwo\tthree\r\nfour", "one two three four"},
		{"bad\xff\xfeutf", "bad\uFFFDutf"},
		{"\u202egnp.exe", "\uFFFDgnp.exe"},
		{"c1\u009b31mx", "c1\uFFFD31mx"},
	} {
		if got := Clean(tc.in); got != tc.want {
			t.Errorf("Clean(%q) = %q, want %q", tc.in, got, tc.want)
		}
	}
	if got, want := CleanLines("a\x1b[1m\n\tb\x07\n"), "a\n\tb\uFFFD\n"; got != want {
		t.Errorf("CleanLines: %q, want %q", got, want)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b]0;x")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Clean(s) {
			if r < ' ' || (r >= 0x7f && r < 0xa0) {
				t.Fatalf("Clean(%q) = %q holds %U", s, Clean(s), r)
			}
		}
	})
}

func TestFitCountsColumnsNotBytes(t *testing.T) {
	for _, tc := range []struct {
		in   string
		n    int
		want string
	}{
		{"abcdef", 4, "abc…"},
		{"abc", 0, "abc"},
		{"世界世界", 5, "世界…"},
		{"abcd", 4, "abcd"},
	} {
		if got := Fit(tc.in, tc.n); got != tc.want {
			t.Errorf("Fit(%q, %d) = %q, want %q", tc.in, tc.n, got, tc.want)
		}
	}
	if got := Pad("世", 4); got != "世  " {
		t.Errorf("Pad: %q", got)
	}
}

func terminal(t *testing.T) (master, tty *os.File) {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close(); _ = tty.Close() })
	if err := pty.Setsize(tty, &pty.Winsize{Cols: 20, Rows: 4}); err != nil {
		t.Fatal(err)
	}
	return master, tty
}

func TestWhenColoursAreUsed(t *testing.T) {
	_, tty := terminal(t)
	for _, tc := range []struct {
		name          string
		tty           bool
		env           []string
		mode          Mode
		colored, live bool
	}{
		{"terminal", true, []string{"TERM=xterm-256color"}, Auto, true, true},
		{"no terminal", false, []string{"TERM=xterm-256color"}, Auto, false, false},
		{"NO_COLOR", true, []string{"TERM=xterm-256color", "NO_COLOR=yes"}, Auto, false, true},
		{"empty NO_COLOR", true, []string{"TERM=xterm-256color", "NO_COLOR="}, Auto, true, true},
		{"dumb", true, []string{"TERM=dumb"}, Auto, false, false},
		{"no TERM", true, nil, Auto, false, false},
		{"never", true, []string{"TERM=xterm-256color"}, Never, false, true},
		{"always without a terminal", false, nil, Always, true, false},
		{"forced by the environment", false, []string{"CLICOLOR_FORCE=1"}, Auto, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s *Stream
			if tc.tty {
				s = New(tty, tc.env, tc.mode)
			} else {
				s = New(&bytes.Buffer{}, tc.env, tc.mode)
			}
			if s.Colored() != tc.colored || s.Live() != tc.live {
				t.Errorf("coloured %v, live %v; want %v, %v", s.Colored(), s.Live(), tc.colored, tc.live)
			}
			if painted := s.Paint(Bad, "x") != "x"; painted != tc.colored {
				t.Errorf("painted: %v", painted)
			}
		})
	}
}

func TestWithoutATerminalNoEscapeIsWritten(t *testing.T) {
	var b bytes.Buffer
	s := New(&b, []string{"TERM=xterm"}, Auto)
	if n, err := s.Write([]byte("\x1b[31mred\x1b[0m\n")); err != nil || n != 13 {
		t.Errorf("Write: %d, %v", n, err)
	}
	if got := b.String(); got != "red\n" {
		t.Errorf("wrote %q", got)
	}
}

func TestSizeComesFromTheTerminalElseFromColumns(t *testing.T) {
	_, tty := terminal(t)
	if w, h := New(tty, []string{"COLUMNS=80"}, Auto).Size(); w != 20 || h != 4 {
		t.Errorf("terminal: %d × %d", w, h)
	}
	if w, _ := New(&bytes.Buffer{}, []string{"COLUMNS=80"}, Auto).Size(); w != 80 {
		t.Errorf("COLUMNS: %d", w)
	}
	if w, _ := New(&bytes.Buffer{}, []string{"COLUMNS=x"}, Auto).Size(); w != 0 {
		t.Errorf("none: %d", w)
	}
}

func TestLiveBlockNeverWrapsNorScrollsAway(t *testing.T) {
	master, tty := terminal(t)
	l := NewLive(New(tty, []string{"TERM=xterm"}, Never))
	long := strings.Repeat("x", 50)
	if err := l.Draw([]string{long, "b", "c", "d", "e"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Print([]string{"done"}, []string{"b"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Draw([]string{"b"}); err != nil { // writes nothing: it is there
		t.Fatal(err)
	}
	if err := l.Clear(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	var out bytes.Buffer
	_, _ = out.ReadFrom(master) // ends with EIO once the other end is closed
	want := "\r\x1b[J" + strings.Repeat("x", 18) + "…\r\nb\r\nc\r\n" +
		"\x1b[3A\r\x1b[Jdone\r\nb\r\n" + "\x1b[A\r\x1b[J"
	if got := out.String(); got != want {
		t.Errorf("wrote\n%q, want\n%q", got, want)
	}
}

func TestParseMode(t *testing.T) {
	if m, err := ParseMode("always"); err != nil || m != Always {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := ParseMode("Sometimes"); err == nil {
		t.Error("nonsense was taken")
	}
}
