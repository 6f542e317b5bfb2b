// Package term is what the kubectl plugins know of terminals: whether a person is
// reading, in which colours and how wide, live lines, and how to show text that a
// node wrote without letting it drive the terminal.
package term

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	xterm "github.com/charmbracelet/x/term"
)

// Mode says when to use colours.
type Mode string

// Modes of colour.
const (
	// Auto uses colours on a terminal that has them, unless NO_COLOR is set.
	Auto Mode = "auto"
	// Always uses colours even without a terminal.
	Always Mode = "always"
	// Never uses none.
	Never Mode = "never"
)

// ParseMode reads the value of a --color flag.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Auto, Always, Never:
		return m, nil
	}
	return "", fmt.Errorf("unknown colour mode %q: use auto, always or never", s)
}

// Stream is an output that a person may be reading. It is no more safe for
// concurrent use than the writer below it.
type Stream struct {
	out     io.Writer
	fd      uintptr
	tty     bool
	live    bool
	columns int
	profile colorprofile.Profile
}

// New returns a stream that writes to out. environ is the process's environment,
// as os.Environ gives it; TERM, COLORTERM, NO_COLOR, CLICOLOR_FORCE and COLUMNS
// count. A terminal that is TERM=dumb gets plain text.
func New(out io.Writer, environ []string, mode Mode) *Stream {
	s := &Stream{out: out, profile: colorprofile.NoTTY}
	if f, ok := out.(xterm.File); ok {
		s.fd, s.tty = f.Fd(), xterm.IsTerminal(f.Fd())
		if file, ok := out.(*os.File); ok && s.tty {
			lipgloss.EnableLegacyWindowsANSI(file)
		}
	}
	env := colorprofile.Env(environ)
	// TERM is seldom set on Windows, whose consoles understand escapes all the same.
	term, known := lookup(environ, "TERM")
	dumb := term == "dumb" || (!known && runtime.GOOS != "windows")
	s.live = s.tty && !dumb
	if n, err := strconv.Atoi(value(environ, "COLUMNS")); err == nil && n > 0 {
		s.columns = n
	}
	forced := value(environ, "CLICOLOR_FORCE")
	switch {
	case mode == Never:
	case mode == Always:
		s.profile = max(env, colorprofile.ANSI)
	case value(environ, "NO_COLOR") != "":
		// no-color.org: any value but the empty one.
	case s.live:
		s.profile = env
	case forced != "" && forced != "0":
		s.profile = max(env, colorprofile.ANSI)
	}
	return s
}

// Write passes p on, its colours reduced to those the stream has.
func (s *Stream) Write(p []byte) (int, error) {
	if s.profile == colorprofile.TrueColor || s.live && !s.Colored() {
		return s.out.Write(p)
	}
	w := colorprofile.Writer{Forward: s.out, Profile: s.profile}
	if _, err := w.Write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// IsTerminal reports whether a person may be looking at the stream.
func (s *Stream) IsTerminal() bool { return s.tty }

// Live reports whether lines can be drawn over.
func (s *Stream) Live() bool { return s.live }

// Colored reports whether Paint has any effect.
func (s *Stream) Colored() bool { return s.profile >= colorprofile.ANSI }

// Size returns the columns and rows of the terminal. Without one, the columns are
// those of COLUMNS, and 0 means no limit.
func (s *Stream) Size() (columns, rows int) {
	if s.tty {
		if w, h, err := xterm.GetSize(s.fd); err == nil && w > 0 {
			return w, h
		}
	}
	return s.columns, 0
}

func lookup(environ []string, name string) (string, bool) {
	// The last one counts, as for exec.Cmd.
	for i := len(environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(environ[i], "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

func value(environ []string, name string) string {
	v, _ := lookup(environ, name)
	return v
}
