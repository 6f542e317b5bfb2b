package screen

import (
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// Reasons is the catalogue as a table.
func Reasons(s *term.Stream, list []health.Reason, width int) []string {
	t := Table{Columns: []Column{
		{Name: "REASON", Importance: 100}, {Name: "SEVERITY", Importance: 90}, {Name: "CONDITION", Importance: 80},
		{Name: "CODE OF", Importance: 40}, {Name: "MEANING", Importance: 60, Flexible: true, Min: 24},
	}}
	advice := health.NewAdvice()
	for _, r := range list {
		t.Rows = append(t.Rows, []Text{{r.Code, term.Title}, severity(r.Severity), {dash(string(r.Condition)), term.Plain},
			{r.Origin, term.Dim}, {advice[r.Code].Meaning, term.Plain}})
	}
	return t.Lines(s, width)
}

// Reason is the page of one reason. code is as it was asked for, which may be one of
// many that a row of the catalogue stands for.
func Reason(s *term.Stream, code string, r health.Reason, width int) []string {
	d := &describer{s: s, width: width}
	advice := health.NewAdvice()[r.Code]
	d.add(s.Paint(term.Title, code))
	sev := severity(r.Severity)
	d.field("Severity", sev.S, sev.Role)
	d.field("Condition", dash(string(r.Condition)), term.Plain)
	d.field("Meaning", advice.Meaning, term.Plain)
	d.field("What to do", advice.Action, term.Plain)
	d.field("Found in", r.Source, term.Plain)
	d.field("Found by", r.Detect, term.Plain)
	d.field("Ends by", r.Clears, term.Plain)
	d.field("Code of", r.Origin, term.Plain)
	return d.out
}

func severity(s health.Severity) Text {
	switch s {
	case health.Fatal:
		return Text{string(s), term.Bad}
	case health.Warning:
		return Text{string(s), term.Warn}
	}
	return Text{string(s), term.Dim}
}
