package screen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// findings are those that the agent names, and the reasons of sick cells that it does
// not: other agents write no annotation.
func (d *describer) findings() {
	r := d.p.Row
	var all []annotation.Finding
	if r.Health != nil {
		all = append(all, r.Health.Findings...)
	}
	for _, c := range r.Cells {
		known := slices.ContainsFunc(all, func(f annotation.Finding) bool { return f.Reason == c.Reason })
		if c.State == fleet.Sick && !known {
			all = append(all, annotation.Finding{Reason: c.Reason, Severity: string(health.Fatal), Condition: c.Condition, Since: c.Since})
		}
	}
	d.section("Active findings", fmt.Sprint(len(all)))
	if len(all) == 0 {
		d.add(d.s.Paint(term.Dim, "  none"))
	}
	for _, f := range all {
		d.finding(f)
	}
	if r.Health != nil && r.Health.Cut > 0 {
		d.wrapped(fmt.Sprintf("The agent left %d more findings or incidents out for size.", r.Health.Cut), "  ", term.Dim)
	}
}

func (d *describer) finding(f annotation.Finding) {
	role, severity := term.Warn, f.Severity
	if f.Severity == string(health.Fatal) && !f.Shadow {
		role = term.Bad
	}
	if f.Shadow {
		severity += " in shadow mode"
	}
	line := "  " + d.s.Paint(role, f.Reason) + " (" + severity + ")"
	if f.Subject != "" {
		line += " on " + f.Subject
	}
	line += ", for " + Age(d.p.Now, f.Since)
	d.add(term.Fit(line, d.width))
	row, known := d.catalog.Lookup(f.Reason)
	advice := d.advice[row.Code]
	if !known {
		advice.Meaning = "The catalogue of this program does not know this reason."
	}
	d.deep("Evidence", f.Evidence)
	d.deep("Meaning", advice.Meaning)
	d.deep("What to do", advice.Action)
	ends := f.Clears
	if ends == "" {
		ends = row.Clears
	}
	if f.Replace {
		ends += "; it came back after two reboots, so another one will not help"
	}
	d.deep("Ends by", ends)
}

// deep is a field below a finding.
func (d *describer) deep(name, text string) {
	if text == "" {
		return
	}
	const column = 16
	at := len(d.out)
	d.wrapped(text, strings.Repeat(" ", column), term.Plain)
	d.out[at] = d.s.Paint(term.Dim, term.Pad("    "+name+":", column)) + d.out[at][column:]
}

func (d *describer) timeline() {
	d.section("Last incidents", "")
	d.wrapped("("+d.p.Reach+")", "  ", term.Dim)
	list := d.p.Timeline
	if len(list) == 0 {
		d.add(d.s.Paint(term.Dim, "  none are known"))
		return
	}
	if more := len(list) - maxTimeline; more > 0 {
		d.add(d.s.Paint(term.Dim, fmt.Sprintf("  … %d older ones: kubectl health events %s", more, d.p.Row.Name)))
		list = list[more:]
	}
	t := Incidents(list, d.p.Now)
	d.indented(*t.without(incidentNode))
}

func (d *describer) pods() {
	var hit []Text
	t := Table{Columns: []Column{{Name: "POD", Importance: 100}, {Name: "OWNER", Importance: 80}, {Name: "PHASE", Importance: 70}, {Name: "GPUS", Importance: 75}}}
	daemons := 0
	for _, p := range d.p.Pods {
		if p.Daemon {
			daemons++
			continue
		}
		owner := Text{p.Owner, term.Plain}
		if p.Owner == "" {
			owner = Text{"none: nothing makes it anew", term.Warn}
		}
		gpus := Text{"–", term.Dim}
		if p.GPUs > 0 {
			gpus = Text{fmt.Sprint(p.GPUs), term.Plain}
		}
		hit = append(hit, owner)
		t.Rows = append(t.Rows, []Text{{p.Namespace + "/" + p.Name, term.Plain}, owner, {p.Phase, term.Plain}, gpus})
	}
	d.section("Pods that a replacement would hit", fmt.Sprintf("%d, and %d that belong to the node", len(hit), daemons))
	if len(t.Rows) > 0 {
		d.indented(t)
	}
}
