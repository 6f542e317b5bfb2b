package term

import "charm.land/lipgloss/v2"

// Role is what a piece of text says; the colour follows from it.
type Role int

// Roles of text.
const (
	Plain Role = iota
	// Good is well, Warn wants a look, Bad is at fault.
	Good
	Warn
	Bad
	// Dim stands back: hints, units, things that do not matter now.
	Dim
	// Title stands out: headings and names.
	Title
	// Accent marks what is at work.
	Accent
)

// style uses the terminal's own sixteen colours, so that the user's theme decides
// what is readable.
func (r Role) style() lipgloss.Style {
	s := lipgloss.NewStyle()
	switch r {
	case Good:
		return s.Foreground(lipgloss.Green)
	case Warn:
		return s.Foreground(lipgloss.Yellow)
	case Bad:
		return s.Foreground(lipgloss.Red).Bold(true)
	case Dim:
		return s.Faint(true)
	case Title:
		return s.Bold(true)
	case Accent:
		return s.Foreground(lipgloss.Cyan)
	default:
		return s
	}
}

// Paint returns text in the colour of its role, or text itself on a stream without
// colours. text must be one line, free of escapes: see Clean.
func (s *Stream) Paint(r Role, text string) string {
	if !s.Colored() || r == Plain || text == "" {
		return text
	}
	return r.style().Render(text)
}
