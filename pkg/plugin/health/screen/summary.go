package screen

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// SummaryOptions say how a summary looks.
type SummaryOptions struct {
	// Width is the terminal's; 0 is no limit.
	Width int
	Wide  bool
	// Columns are the names of those to show, in order; empty is the usual ones.
	Columns []string
	Now     time.Time
}

const (
	nodeColumn = iota
	verdictColumn
	firstCell
	readyColumn   = firstCell + fleet.Ready
	reasonColumn  = readyColumn + 1
	warningColumn = readyColumn + 2
	sinceColumn   = readyColumn + 3
	repairColumn  = readyColumn + 4
	agentColumn   = readyColumn + 5
)

// minReason is how far a reason may be cut before a column goes.
const minReason = 18

// Columns are the names of the columns of a summary, in order. Those of -o wide come
// last.
func Columns() []string {
	var out []string
	for _, c := range summaryColumns(true) {
		out = append(out, c.Name)
	}
	return out
}

func summaryColumns(wide bool) []Column {
	cols := []Column{
		{Name: "NODE", Importance: 100}, {Name: "VERDICT", Importance: 95},
		{Name: "KERNEL", Importance: 60}, {Name: "RUNTIME", Importance: 58}, {Name: "NETWORK", Importance: 56},
		{Name: "STORAGE", Importance: 54}, {Name: "ACCEL", Importance: 70}, {Name: "READY", Importance: 65},
		{Name: "REASON", Importance: 90, Flexible: true, Min: minReason},
		{Name: "WARNINGS", Importance: 50, Flexible: true, Min: 10}, {Name: "SINCE", Importance: 80},
		{Name: "REPAIR", Importance: 85}, {Name: "AGENT", Importance: 40},
	}
	if wide {
		cols = append(cols,
			Column{Name: "GPUS", Importance: 45}, Column{Name: "INSTANCE-TYPE", Importance: 35},
			Column{Name: "ZONE", Importance: 30}, Column{Name: "NODEPOOL", Importance: 33},
			Column{Name: "MESSAGE", Importance: 20, Flexible: true, Min: 24})
	}
	return cols
}

// Summary lays rows out as a table: the header first, then a line for each row. With
// room for it, each cell says its reason; without, cells are signs only, and one column
// has the worst reason.
func Summary(s *term.Stream, rows []*fleet.Row, o SummaryOptions) []string {
	wide := o.Wide
	// Any column can be asked for by name.
	o.Wide = wide || len(o.Columns) > 0
	t := Table{Columns: summaryColumns(o.Wide), Rows: make([][]Text, len(rows))}
	for i := range rows {
		t.Rows[i] = summaryRow(rows[i], o, true)
	}
	if len(o.Columns) > 0 {
		return t.only(o.Columns).Lines(s, o.Width)
	}
	if !wide {
		full := t.without(reasonColumn)
		if o.Width <= 0 || full.natural() <= o.Width {
			return full.Lines(s, o.Width)
		}
	} else if o.Width <= 0 || t.natural() <= o.Width {
		return t.Lines(s, o.Width)
	}
	for i := range rows {
		t.Rows[i] = summaryRow(rows[i], o, false)
	}
	return t.Lines(s, o.Width)
}

func summaryRow(r *fleet.Row, o SummaryOptions, reasons bool) []Text {
	row := make([]Text, agentColumn+1, agentColumn+6)
	row[nodeColumn] = Text{r.Name, term.Title}
	row[verdictColumn] = VerdictText(r, o.Now)
	for i, c := range r.Cells {
		row[firstCell+i] = CellText(c, o.Now, reasons)
	}
	row[reasonColumn] = reasonText(r)
	row[warningColumn] = warningText(r)
	row[sinceColumn] = Text{Age(o.Now, r.Since), term.Plain}
	row[repairColumn] = RepairText(r.Repair, o.Now)
	row[agentColumn] = Text{dash(r.Agent), term.Dim}
	if o.Wide {
		row = append(row, gpuText(r.GPUs), Text{dash(r.Labels[fleet.LabelInstanceType]), term.Plain},
			Text{dash(r.Labels[fleet.LabelZone]), term.Plain}, Text{dash(r.Pool()), term.Plain}, Text{dash(r.Message), term.Plain})
	}
	return row
}

// reasonText is the worst reason. Silence has no reason code, so it is put in words.
func reasonText(r *fleet.Row) Text {
	if r.Reason != "" {
		return Text{r.Reason, verdictRole(r.Verdict)}
	}
	for _, c := range r.Cells {
		if r.Verdict == fleet.VerdictStale && c.State == fleet.Stale {
			return Text{c.Condition + " is silent", term.Warn}
		}
	}
	return Text{"–", term.Dim}
}

func verdictRole(v fleet.Verdict) term.Role {
	switch v {
	case fleet.VerdictSick:
		return term.Bad
	case fleet.VerdictStale, fleet.VerdictWarning:
		return term.Warn
	case fleet.VerdictHealthy:
		return term.Good
	}
	return term.Dim
}

// VerdictText is the verdict, with its age when it is stale.
func VerdictText(r *fleet.Row, now time.Time) Text {
	s := string(r.Verdict)
	if r.Verdict == fleet.VerdictStale && !r.Since.IsZero() {
		s += " " + Age(now, r.Since)
	}
	return Text{s, verdictRole(r.Verdict)}
}

// CellText is the sign of a cell, and its reason if wanted.
func CellText(c fleet.Cell, now time.Time, reason bool) Text {
	out := Text{"–", term.Dim}
	switch c.State {
	case fleet.Healthy:
		return Text{"✔", term.Good}
	case fleet.Sick:
		out = Text{"✘", term.Bad}
	case fleet.Stale:
		out = Text{"?", term.Warn}
	}
	if !reason {
		return out
	}
	if c.Reason != "" {
		out.S += " " + c.Reason
	}
	if c.Silent && !c.Heartbeat.IsZero() && (c.State == fleet.Stale || c.State == fleet.Sick) {
		age := Age(now, c.Heartbeat)
		if c.State == fleet.Sick {
			age = "?" + age
		}
		out.S += " " + age
	}
	return out
}

func warningText(r *fleet.Row) Text {
	switch n := len(r.Warnings); {
	case n == 0 && !r.WarningsKnown:
		return Text{"?", term.Dim}
	case n == 0:
		return Text{"0", term.Dim}
	case n == 1:
		return Text{r.Warnings[0].Reason, term.Warn}
	default:
		return Text{r.Warnings[0].Reason + " +" + strconv.Itoa(n-1), term.Warn}
	}
}

// RepairText says when the node would be replaced.
func RepairText(r fleet.Repair, now time.Time) Text {
	switch r.State {
	case fleet.RepairPending:
		if in := r.At.Sub(now); in > 0 {
			return Text{"in " + span(in), term.Warn}
		}
		return Text{"due " + span(now.Sub(r.At)) + " ago", term.Bad}
	case fleet.RepairBlocked:
		return Text{fmt.Sprintf("blocked: %d/%d unhealthy > %d %%", r.Unhealthy, r.Total, r.Percent), term.Bad}
	case fleet.RepairSilenced:
		return Text{"silenced", term.Warn}
	}
	return Text{"–", term.Dim}
}

func gpuText(g fleet.GPUs) Text {
	switch {
	case g.Total == 0:
		return Text{"–", term.Dim}
	case g.OK < g.Total:
		return Text{fmt.Sprintf("%d/%d", g.OK, g.Total), term.Bad}
	}
	return Text{fmt.Sprintf("%d/%d", g.OK, g.Total), term.Plain}
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
