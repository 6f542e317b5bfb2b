package screen

import (
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// incidentNode is the column of the node's name.
const incidentNode = 1

// Incidents is the table of incidents in the order given.
func Incidents(list []fleet.Occurrence, now time.Time) *Table {
	t := &Table{Columns: []Column{
		{Name: "LAST", Importance: 100}, {Name: "NODE", Importance: 95}, {Name: "SEVERITY", Importance: 60},
		{Name: "REASON", Importance: 90, Flexible: true, Min: minReason}, {Name: "COUNT", Importance: 50}, {Name: "LASTED", Importance: 55},
		{Name: "SUBJECT", Importance: 40}, {Name: "ENDED", Importance: 35}, {Name: "FROM", Importance: 20},
		{Name: "MESSAGE", Importance: 45, Flexible: true, Min: 20},
	}}
	for i := range list {
		o := &list[i]
		role := term.Plain
		switch o.Severity {
		case string(health.Fatal):
			role = term.Bad
		case string(health.Warning):
			role = term.Warn
		}
		t.Rows = append(t.Rows, []Text{
			{Age(now, o.Last), term.Plain}, {o.Node, term.Title}, {o.Severity, role}, {o.Reason, role},
			{strconv.Itoa(o.Count), term.Plain}, {lasted(o, now), term.Plain}, {dash(o.Subject), term.Plain},
			{ended(o), term.Dim}, {o.Source, term.Dim}, {dash(oneLine(o.Message)), term.Plain},
		})
	}
	return t
}

func lasted(o *fleet.Occurrence, now time.Time) string {
	switch {
	case !o.End.IsZero():
		return span(o.End.Sub(o.First))
	case o.Source == fleet.SourceAnnotation:
		return span(now.Sub(o.First)) + "+"
	}
	return span(o.Last.Sub(o.First))
}

func ended(o *fleet.Occurrence) string {
	switch {
	case o.Ended != "":
		return o.Ended
	case o.Source == fleet.SourceAnnotation && o.End.IsZero():
		return "not yet"
	}
	return "–"
}

func oneLine(s string) string { return strings.TrimSpace(term.Clean(s)) }
