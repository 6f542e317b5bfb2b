package live

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/screen"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// View implements tea.Model.
func (m *Model) View() tea.View {
	var lines []string
	switch m.mode {
	case describing:
		lines = append(strings.Split(m.page.View(), "\n"), m.bar("Esc back   l logs   ↑ ↓ scroll"))
	case helping:
		lines = append(m.helpLines(), m.bar("Esc back"))
	default:
		lines = m.list()
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	v.WindowTitle = "kubectl health"
	return v
}

func (m *Model) list() []string {
	width := m.width
	lines := []string{term.Fit(screen.Totals(m.style, m.totals), width)}
	switch {
	case m.state.Contact != nil:
		lines[0] = term.Fit(m.style.Paint(term.Bad, "no word from the API server: "+oneLine(m.state.Contact)), width)
	case !m.state.Synced:
		lines[0] = "reading nodes …"
	}
	end := min(len(m.rows), m.top+m.visible())
	table := screen.Summary(m.style, m.rows[min(m.top, end):end], screen.SummaryOptions{Width: width, Now: m.state.View.Now})
	for i, l := range table {
		if i == m.cursor-m.top+1 {
			// Inverse survives colours inside only on plain text.
			l = lipgloss.NewStyle().Reverse(true).Render(term.Pad(plain(l), width))
		}
		lines = append(lines, l)
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return append(lines[:max(1, min(len(lines), m.height-1))], m.bottom())
}

// bottom is the filter while it is typed, else a notice, else where we are.
func (m *Model) bottom() string {
	if m.filter.Focused() {
		return term.Fit(m.filter.View(), m.width)
	}
	if m.notice != "" {
		return term.Fit(m.style.Paint(term.Accent, m.notice), m.width)
	}
	where := fmt.Sprintf("%d/%d by %s", min(m.cursor+1, len(m.rows)), len(m.rows), m.order)
	if m.unhealthy {
		where += ", unhealthy only"
	}
	if f := m.filter.Value(); f != "" {
		where += ", filter " + f
	}
	return m.bar(where + "   Enter describe   l logs   / filter   s sort   u unhealthy   ? help   q quit")
}

func (m *Model) bar(text string) string { return m.style.Paint(term.Dim, term.Fit(text, m.width)) }

func (m *Model) helpLines() []string {
	lines := []string{m.style.Paint(term.Title, "kubectl health nodes watch"), ""}
	for _, h := range help() {
		lines = append(lines, term.Fit("  "+m.style.Paint(term.Accent, term.Pad(h[0], 24))+h[1], m.width))
	}
	for len(lines) < m.height-1 {
		lines = append(lines, "")
	}
	return lines
}

func plain(s string) string { return term.Clean(s) }

func oneLine(err error) string {
	line, _, _ := strings.Cut(term.CleanLines(err.Error()), "\n")
	return line
}
