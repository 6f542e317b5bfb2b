// Package screen turns rows and incidents into lines for a person. It draws nothing
// itself and knows no cluster: what it returns is text, with the colours of a
// term.Stream.
package screen

import (
	"slices"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// Text is a piece of a line and what it says.
type Text struct {
	S    string
	Role term.Role
}

// Column is a column of a table.
type Column struct {
	Name string
	// Importance says which columns go first when the terminal is narrow: those with
	// less of it. The first column always stays.
	Importance int
	// Flexible columns are cut down to Min columns before any column goes.
	Flexible bool
	Min      int
}

const gap = 2

// Table is rows of text under columns. It is made for tables of thousands of rows:
// widths are measured once, and nothing is laid out that is not shown.
type Table struct {
	Columns []Column
	Rows    [][]Text
}

// Lines lays the table out for a terminal of that many columns; 0 is no limit. The
// first line is the header.
func (t *Table) Lines(s *term.Stream, columns int) []string {
	widths := t.widths()
	shown := t.fit(widths, columns)
	out := make([]string, 0, len(t.Rows)+1)
	header := make([]Text, len(t.Columns))
	for i, c := range t.Columns {
		header[i] = Text{c.Name, term.Dim}
	}
	var b strings.Builder
	out = append(out, line(&b, s, header, shown, widths))
	for _, row := range t.Rows {
		out = append(out, line(&b, s, row, shown, widths))
	}
	return out
}

func (t *Table) widths() []int {
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = term.Width(c.Name)
		for _, row := range t.Rows {
			if w := len(row[i].S); w <= widths[i] {
				continue // bytes are never fewer than columns
			}
			widths[i] = max(widths[i], term.Width(row[i].S))
		}
	}
	return widths
}

// fit returns the columns that are shown, and narrows widths.
func (t *Table) fit(widths []int, columns int) []int {
	shown := make([]int, len(t.Columns))
	for i := range shown {
		shown[i] = i
	}
	if columns <= 0 {
		return shown
	}
	total := func() int {
		n := -gap
		for _, i := range shown {
			n += widths[i] + gap
		}
		return n
	}
	narrow := func() {
		for _, i := range shown {
			if over := total() - columns; t.Columns[i].Flexible && over > 0 {
				widths[i] = max(widths[i]-over, min(widths[i], t.Columns[i].Min))
			}
		}
	}
	natural := slices.Clone(widths)
	for narrow(); total() > columns && len(shown) > 1; narrow() {
		copy(widths, natural)
		least := 1
		for k := range shown[1:] {
			if t.Columns[shown[k+1]].Importance < t.Columns[shown[least]].Importance {
				least = k + 1
			}
		}
		shown = slices.Delete(shown, least, least+1)
	}
	if over := total() - columns; over > 0 {
		widths[shown[0]] = max(1, widths[shown[0]]-over)
	}
	return shown
}

func line(b *strings.Builder, s *term.Stream, row []Text, shown, widths []int) string {
	b.Reset()
	for k, i := range shown {
		text := row[i].S
		w := len(text)
		if w > widths[i] {
			text = term.Fit(text, widths[i])
			w = term.Width(text)
		} else if !ascii(text) {
			w = term.Width(text)
		}
		b.WriteString(s.Paint(row[i].Role, text))
		if k < len(shown)-1 {
			for range widths[i] - w + gap {
				b.WriteByte(' ')
			}
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// natural is the width without a limit.
func (t *Table) natural() int {
	n := -gap
	for _, w := range t.widths() {
		n += w + gap
	}
	return n
}

// only is the table with the columns of those names, in their order.
func (t *Table) only(names []string) *Table {
	out := &Table{Rows: make([][]Text, len(t.Rows))}
	for _, name := range names {
		i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
		if i < 0 {
			continue
		}
		out.Columns = append(out.Columns, t.Columns[i])
		for k, row := range t.Rows {
			out.Rows[k] = append(out.Rows[k], row[i])
		}
	}
	return out
}

// without is the table without one column.
func (t *Table) without(column int) *Table {
	out := &Table{Rows: make([][]Text, len(t.Rows))}
	for i, c := range t.Columns {
		if i != column {
			out.Columns = append(out.Columns, c)
		}
	}
	for k, row := range t.Rows {
		out.Rows[k] = append(append(make([]Text, 0, len(row)-1), row[:column]...), row[column+1:]...)
	}
	return out
}
