package fleet

import (
	"cmp"
	"slices"
	"strings"
)

// Totals counts nodes by verdict, and their GPUs.
type Totals struct {
	Nodes       int  `json:"nodes"`
	Healthy     int  `json:"healthy"`
	Warning     int  `json:"warning"`
	Sick        int  `json:"sick"`
	Stale       int  `json:"stale"`
	Unmonitored int  `json:"unmonitored"`
	GPUs        GPUs `json:"gpus"`
}

// Add counts a node.
func (t *Totals) Add(r *Row) {
	t.Nodes++
	switch r.Verdict {
	case VerdictHealthy:
		t.Healthy++
	case VerdictWarning:
		t.Warning++
	case VerdictSick:
		t.Sick++
	case VerdictStale:
		t.Stale++
	case VerdictUnmonitored:
		t.Unmonitored++
	}
	t.GPUs.OK += r.GPUs.OK
	t.GPUs.Total += r.GPUs.Total
}

// Count counts all rows.
func Count(rows []*Row) Totals {
	var t Totals
	for i := range rows {
		t.Add(rows[i])
	}
	return t
}

// Group is the nodes that have the same value of a label.
type Group struct {
	// Value is empty for nodes without the label.
	Value  string
	Totals Totals
}

// GroupBy counts rows by the value of a label, the groups with the most sick nodes
// first.
func GroupBy(rows []*Row, label string) []Group {
	byValue := map[string]*Totals{}
	for i := range rows {
		v := rows[i].Labels[label]
		if byValue[v] == nil {
			byValue[v] = &Totals{}
		}
		byValue[v].Add(rows[i])
	}
	out := make([]Group, 0, len(byValue))
	for v, t := range byValue {
		out = append(out, Group{v, *t})
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Totals.Sick, a.Totals.Sick), cmp.Compare(b.Totals.Stale, a.Totals.Stale), strings.Compare(a.Value, b.Value))
	})
	return out
}

// Order says how rows are sorted.
type Order string

// Orders of rows. Rows that are equal are sorted by name.
const (
	// ByName is alphabetical.
	ByName Order = "name"
	// BySeverity has the worst first, and the longest sick first among those.
	BySeverity Order = "severity"
	// BySince has first what changed last.
	BySince Order = "since"
	// ByHeartbeat has the oldest heartbeat first.
	ByHeartbeat Order = "heartbeat"
)

// Orders returns all orders.
func Orders() []Order { return []Order{ByName, BySeverity, BySince, ByHeartbeat} }

// Sort sorts rows in place. Rows that are in order of their names take little time: in
// most fleets most nodes are healthy, and stay so.
func Sort(rows []*Row, by Order) {
	if by != BySeverity {
		sortBy(rows, by)
		return
	}
	var byRank [5][]*Row
	for _, r := range rows {
		byRank[r.Verdict.Rank()] = append(byRank[r.Verdict.Rank()], r)
	}
	rest := rows
	for rank := len(byRank) - 1; rank >= 0; rank-- {
		n := copy(rest, byRank[rank])
		sortBy(rest[:n], BySeverity)
		rest = rest[n:]
	}
}

func sortBy(rows []*Row, by Order) {
	slices.SortFunc(rows, func(a, b *Row) int {
		c := 0
		switch by {
		case BySeverity:
			if a.Verdict.Rank() > 0 {
				c = a.Since.Compare(b.Since)
			}
		case BySince:
			c = b.Since.Compare(a.Since)
		case ByHeartbeat:
			c = a.Heartbeat.Compare(b.Heartbeat)
		}
		return cmp.Or(c, strings.Compare(a.Name, b.Name))
	})
}

// ExitCode says by number how the nodes are: 3 if any is sick, else 4 if what is known
// of any is stale or nothing is known of it, else 2 if any has warnings, else 0.
func (t Totals) ExitCode() int {
	switch {
	case t.Sick > 0:
		return 3
	case t.Stale+t.Unmonitored > 0:
		return 4
	case t.Warning > 0:
		return 2
	}
	return 0
}
