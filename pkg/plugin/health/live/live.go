// Package live is the full-screen view of the health of nodes, for a terminal.
package live

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/textinput"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/board"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// Source is where the view gets what it shows.
type Source struct {
	// Rows returns the nodes as they are now.
	Rows func() board.State
	// Describe returns the page of a node, for that many columns.
	Describe func(ctx context.Context, node string, width int) ([]string, error)
	// Fetch is the command that brings the bundle of a node home; it prints its path.
	Fetch func(node string) *exec.Cmd
}

// Options say how the view begins.
type Options struct {
	SortBy    fleet.Order
	Unhealthy bool
}

// Refresh tells the program that the nodes have changed, or their ages.
type Refresh struct{}

type mode int

const (
	listing mode = iota
	describing
	helping
)

// Model is the view as bubbletea drives it.
type Model struct {
	ctx    context.Context
	source Source
	style  *term.Stream

	width, height int
	mode          mode
	order         fleet.Order
	unhealthy     bool
	filter        textinput.Model

	state  board.State
	totals fleet.Totals
	// rows are those shown, sorted; selected is the name under the cursor, which stays
	// on its node while others move.
	rows     []*fleet.Row
	selected string
	cursor   int
	top      int

	page     viewport.Model
	pageNode string
	notice   string
}

// New returns the view of source. style says which colours the terminal has. What it
// asks of a cluster ends with ctx.
func New(ctx context.Context, source Source, style *term.Stream, o Options) *Model {
	filter := textinput.New()
	filter.Prompt = "filter: "
	// Its blinking would redraw the screen all the time.
	filter.SetVirtualCursor(false)
	return &Model{ctx: ctx, source: source, style: style, order: o.SortBy, unhealthy: o.Unhealthy, filter: filter, page: viewport.New()}
}

// Init implements tea.Model.
func (m *Model) Init() tea.Cmd { return nil }

type pageMsg struct {
	node  string
	lines []string
	err   error
}

type fetchedMsg struct {
	node, path string
	err        error
}

// Update implements tea.Model.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.page.SetWidth(msg.Width)
		m.page.SetHeight(max(1, msg.Height-1))
		m.refresh()
		if m.mode == describing {
			return m, m.describe(m.pageNode)
		}
	case Refresh:
		m.refresh()
	case pageMsg:
		m.showPage(msg)
	case fetchedMsg:
		m.notice = "bundle of " + msg.node + ": " + msg.path
		if msg.err != nil {
			m.notice = "kubectl ekslogs " + msg.node + ": " + msg.err.Error()
		}
	case tea.KeyPressMsg:
		return m, m.key(msg)
	}
	return m, nil
}

// refresh takes the nodes as they are now.
func (m *Model) refresh() {
	m.state = m.source.Rows()
	m.totals = fleet.Count(m.state.Rows)
	word := strings.ToLower(m.filter.Value())
	m.rows = slices.DeleteFunc(m.state.Rows, func(r *fleet.Row) bool {
		return m.unhealthy && r.Verdict.Rank() < fleet.VerdictWarning.Rank() || !matches(r, word)
	})
	m.state.Rows = nil
	fleet.Sort(m.rows, m.order)
	if i := slices.IndexFunc(m.rows, func(r *fleet.Row) bool { return r.Name == m.selected }); i >= 0 {
		m.cursor = i
	}
	m.move(0)
}

// matches reports whether any of the words that a row shows holds word.
func matches(r *fleet.Row, word string) bool {
	if word == "" {
		return true
	}
	for _, s := range []string{r.Name, string(r.Verdict), r.Reason, r.Agent, r.Pool(), r.Labels[fleet.LabelInstanceType], r.Labels[fleet.LabelZone]} {
		if strings.Contains(strings.ToLower(s), word) {
			return true
		}
	}
	for _, c := range r.Cells {
		if strings.Contains(strings.ToLower(c.Reason), word) {
			return true
		}
	}
	return false
}

// move moves the cursor by n rows and keeps it in sight.
func (m *Model) move(n int) {
	m.cursor = max(0, min(m.cursor+n, len(m.rows)-1))
	m.selected = ""
	if len(m.rows) > 0 {
		m.selected = m.rows[m.cursor].Name
	}
	visible := m.visible()
	m.top = max(0, min(m.top, len(m.rows)-visible))
	if m.cursor < m.top {
		m.top = m.cursor
	}
	if m.cursor >= m.top+visible {
		m.top = m.cursor - visible + 1
	}
}

// visible is how many rows have room: not the totals, the header and the last line.
func (m *Model) visible() int { return max(1, m.height-3) }

func (m *Model) describe(node string) tea.Cmd {
	width := m.width
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, time.Minute)
		defer cancel()
		lines, err := m.source.Describe(ctx, node, width)
		return pageMsg{node, lines, err}
	}
}

func (m *Model) showPage(msg pageMsg) {
	if m.mode != describing || msg.node != m.pageNode {
		return
	}
	if msg.err != nil {
		msg.lines = []string{msg.node, "", m.style.Paint(term.Bad, term.Clean(msg.err.Error()))}
	}
	m.page.SetContentLines(msg.lines)
}

func (m *Model) fetch(node string) tea.Cmd {
	cmd := m.source.Fetch(node)
	var path strings.Builder
	cmd.Stdout = &path
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		return fetchedMsg{node, term.Clean(strings.TrimSpace(path.String())), err}
	})
}
