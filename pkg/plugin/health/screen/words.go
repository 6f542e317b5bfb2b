package screen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// Age is how long ago t was, as kubectl says it; "–" when t is not known. What lies in
// the future by a wrong clock was just now.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return span(now.Sub(t))
}

func span(d time.Duration) string { return duration.HumanDuration(max(0, d)) }

// Plural is "1 node", "2 nodes".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Totals is the line of totals.
func Totals(s *term.Stream, t fleet.Totals) string {
	part := func(n int, word string, r term.Role) string {
		text := fmt.Sprintf("%d %s", n, word)
		if n == 0 {
			return s.Paint(term.Dim, text)
		}
		return s.Paint(r, text)
	}
	parts := []string{part(t.Healthy, "healthy", term.Good)}
	if t.Warning > 0 {
		parts = append(parts, part(t.Warning, "with warnings", term.Warn))
	}
	parts = append(parts, part(t.Sick, "sick", term.Bad), part(t.Stale, "stale", term.Warn), part(t.Unmonitored, "unmonitored", term.Plain))
	out := s.Paint(term.Title, Plural(t.Nodes, "node")) + ": " + strings.Join(parts, ", ")
	if t.GPUs.Total > 0 {
		gpus := fmt.Sprintf("%d/%d ok", t.GPUs.OK, t.GPUs.Total)
		role := term.Good
		if t.GPUs.OK < t.GPUs.Total {
			role = term.Bad
		}
		out += "; GPUs " + s.Paint(role, gpus)
	}
	return out
}

// Groups is the table of totals by the value of a label, the header first.
func Groups(s *term.Stream, label string, groups []fleet.Group, width int) []string {
	t := Table{Columns: []Column{
		{Name: strings.ToUpper(label), Importance: 100}, {Name: "NODES", Importance: 80}, {Name: "HEALTHY", Importance: 50},
		{Name: "WARNING", Importance: 40}, {Name: "SICK", Importance: 90}, {Name: "STALE", Importance: 70},
		{Name: "UNMONITORED", Importance: 30}, {Name: "GPUS", Importance: 60},
	}}
	number := func(n int, r term.Role) Text {
		if n == 0 {
			r = term.Dim
		}
		return Text{strconv.Itoa(n), r}
	}
	for _, g := range groups {
		n := g.Totals
		value := Text{g.Value, term.Title}
		if g.Value == "" {
			value = Text{"(none)", term.Dim}
		}
		t.Rows = append(t.Rows, []Text{value, number(n.Nodes, term.Plain), number(n.Healthy, term.Good), number(n.Warning, term.Warn),
			number(n.Sick, term.Bad), number(n.Stale, term.Warn), number(n.Unmonitored, term.Plain), gpuText(n.GPUs)})
	}
	return t.Lines(s, width)
}

// maxShares is how many lines may tell what nodes share.
const maxShares = 5

// Shares are lines that tell what nodes with the same reason have in common:
// "NvidiaXID79Error: 5/5 on ami-…, 5/40 nodes" says that all five nodes with the reason
// have that AMI, which five of all forty have.
func Shares(s *term.Stream, shares []fleet.Share, width int) []string {
	var out []string
	for i, h := range shares {
		if i == maxShares {
			out = append(out, s.Paint(term.Dim, fmt.Sprintf("… and %d more (-o json has them all)", len(shares)-i)))
			break
		}
		tail := fmt.Sprintf(": %d/%d on %s, %d/%d nodes (%s, p=%.1g)", h.With, h.Reasoned, h.Value, h.Having, h.Total, h.Trait, h.P)
		out = append(out, s.Paint(term.Accent, term.Fit(h.Reason+tail, width)))
	}
	return out
}
