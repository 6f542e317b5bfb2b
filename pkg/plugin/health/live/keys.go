package live

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
)

// help is what "?" shows: a key and what it does.
func help() [][2]string {
	return [][2]string{
		{"↑ ↓ PgUp PgDn Home End", "move; j and k as well"},
		{"Enter", "all that is known of the node"},
		{"l", "bring the node's log bundle home (kubectl ekslogs)"},
		{"/", "filter by what you type: name, verdict, reason, pool, zone, type; Esc ends it"},
		{"s", "sort by the next order: name, severity, since, heartbeat"},
		{"u", "only nodes that are sick, stale or have warnings, or all again"},
		{"?", "this help"},
		{"q Ctrl-C", "quit; q and Esc leave a page first"},
	}
}

// key obeys a key.
func (m *Model) key(msg tea.KeyPressMsg) tea.Cmd {
	k := msg.String()
	if k == "ctrl+c" {
		return tea.Quit
	}
	m.notice = ""
	switch {
	case m.filter.Focused():
		return m.filterKey(msg)
	case m.mode != listing:
		return m.pageKey(msg)
	}
	switch k {
	case "q":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.visible())
	case "pgdown", "space":
		m.move(m.visible())
	case "home", "g":
		m.move(-len(m.rows))
	case "end", "G":
		m.move(len(m.rows))
	case "/":
		return m.filter.Focus()
	case "esc":
		m.filter.SetValue("")
		m.refresh()
	case "s":
		orders := fleet.Orders()
		m.order = orders[(slices.Index(orders, m.order)+1)%len(orders)]
		m.refresh()
	case "u":
		m.unhealthy = !m.unhealthy
		m.refresh()
	case "?":
		m.mode = helping
	case "enter":
		return m.open()
	case "l":
		if m.selected != "" {
			return m.fetch(m.selected)
		}
	}
	return nil
}

func (m *Model) open() tea.Cmd {
	if m.selected == "" {
		return nil
	}
	m.mode, m.pageNode = describing, m.selected
	m.page.SetContentLines([]string{"reading " + m.selected + " …"})
	m.page.GotoTop()
	return m.describe(m.selected)
}

// filterKey is a key while the filter is typed.
func (m *Model) filterKey(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "esc":
		m.filter.SetValue("")
		m.filter.Blur()
	case "enter":
		m.filter.Blur()
	case "up", "down":
		m.filter.Blur()
		return m.key(msg)
	default:
		var cmd tea.Cmd
		m.filter, cmd = m.filter.Update(msg)
		m.refresh()
		return cmd
	}
	m.refresh()
	return nil
}

// pageKey is a key on a page.
func (m *Model) pageKey(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "q", "esc", "enter", "?":
		m.mode = listing
		return nil
	case "home", "g":
		m.page.GotoTop()
		return nil
	case "end", "G":
		m.page.GotoBottom()
		return nil
	case "l":
		if m.mode == describing {
			return m.fetch(m.pageNode)
		}
	}
	var cmd tea.Cmd
	m.page, cmd = m.page.Update(msg)
	return cmd
}
