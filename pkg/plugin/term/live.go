package term

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Live is a block of lines at the bottom of a terminal that is drawn over, while
// finished lines scroll away above it. It is for a Stream that is Live, and not
// safe for concurrent use.
type Live struct {
	s     *Stream
	drawn int
	// last is the block that was drawn.
	last string
}

// NewLive returns an empty block on s.
func NewLive(s *Stream) *Live { return &Live{s: s} }

// Draw shows lines in place of those drawn before. Each is cut to the terminal's
// width, since a wrapped line could not be drawn over; what does not fit the
// terminal's height is left out at the end.
func (l *Live) Draw(lines []string) error {
	return l.redraw(nil, lines)
}

// Print writes finished lines above the block, and draws the block anew below them.
func (l *Live) Print(finished, block []string) error {
	return l.redraw(finished, block)
}

// Clear removes the block.
func (l *Live) Clear() error { return l.redraw(nil, nil) }

func (l *Live) redraw(finished, block []string) error {
	columns, rows := l.s.Size()
	if rows > 1 && len(block) > rows-1 {
		block = block[:rows-1]
	}
	block = slices.Clone(block)
	for i, line := range block {
		// One column is left free: some terminals wrap at the last one.
		block[i] = Fit(line, columns-1) + "\n"
	}
	next := strings.Join(block, "")
	if len(finished) == 0 && next == l.last {
		return nil
	}
	var b strings.Builder
	if l.drawn > 0 {
		b.WriteString(ansi.CursorUp(l.drawn))
	}
	b.WriteString("\r" + ansi.EraseScreenBelow)
	for _, line := range finished {
		b.WriteString(line + "\n")
	}
	b.WriteString(next)
	l.drawn, l.last = len(block), next
	_, err := l.s.Write([]byte(b.String()))
	return err
}
