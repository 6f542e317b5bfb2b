package screen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/cluster"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// Page is all that is known of one node.
type Page struct {
	Row    *fleet.Row
	Policy *fleet.Policy
	Pools  fleet.Pools
	Now    time.Time
	// Timeline is sorted, the newest last.
	Timeline []fleet.Occurrence
	// Reach says how far back the timeline goes, in words.
	Reach string
	Pods  []cluster.Pod
	// Missing says what could not be read.
	Missing []string
	// Next is the command line that brings the node's logs home.
	Next string
}

// maxTimeline is how many incidents a page shows.
const maxTimeline = 20

// Describe lays the page out for a terminal of that many columns; 0 is no limit.
func Describe(s *term.Stream, p *Page, catalog *health.Catalog, width int) []string {
	d := &describer{s: s, p: p, width: width, catalog: catalog, advice: health.NewAdvice()}
	d.head()
	d.conditions()
	d.findings()
	d.gpus()
	d.timeline()
	d.pods()
	d.section("Next", "")
	d.add("  " + p.Next)
	for _, m := range p.Missing {
		d.wrapped("Not shown: "+m, "", term.Dim)
	}
	return d.out
}

type describer struct {
	s       *term.Stream
	p       *Page
	width   int
	catalog *health.Catalog
	advice  map[string]health.Advice
	out     []string
}

func (d *describer) add(line string) { d.out = append(d.out, line) }

func (d *describer) section(title, note string) {
	d.add("")
	line := d.s.Paint(term.Title, title)
	if note != "" {
		line += d.s.Paint(term.Dim, "  "+note)
	}
	d.add(term.Fit(line, d.width))
}

// wrapped adds text of any length, its lines behind indent.
func (d *describer) wrapped(text, indent string, r term.Role) {
	limit := 100
	if d.width > 0 {
		limit = min(limit, d.width)
	}
	limit = max(20, limit-len(indent))
	for l := range strings.SplitSeq(ansi.Wrap(text, limit, ""), "\n") {
		d.add(indent + d.s.Paint(r, strings.TrimRight(l, " ")))
	}
}

// field adds "Name:   text", the text wrapped behind its own column.
func (d *describer) field(name, text string, r term.Role) {
	if text == "" {
		return
	}
	const column = 12
	at := len(d.out)
	d.wrapped(text, strings.Repeat(" ", column), r)
	d.out[at] = d.s.Paint(term.Dim, term.Pad(name+":", column)) + d.out[at][column:]
}

func (d *describer) head() {
	r := d.p.Row
	d.add(d.s.Paint(term.Title, r.Name))
	verdict := VerdictText(r, d.p.Now)
	if r.Reason != "" {
		verdict.S += ": " + r.Reason
	}
	if r.Verdict != fleet.VerdictStale && !r.Since.IsZero() {
		verdict.S += ", for " + Age(d.p.Now, r.Since)
	}
	d.field("Verdict", verdict.S, verdict.Role)
	repair := RepairText(r.Repair, d.p.Now)
	switch {
	case r.Repair.State == fleet.RepairNone && r.Repair.By == "":
		repair.S = "nothing that would replace this node is known (no Karpenter node pool, no EKS node group)"
	case r.Repair.State == fleet.RepairNone:
		repair.S = "no reason for " + r.Repair.By + " to replace it"
	default:
		repair.S += ", by " + r.Repair.By
		if r.Repair.Condition != "" {
			repair.S += " for " + r.Repair.Condition
		}
	}
	d.field("Repair", repair.S, repair.Role)
	watcher := r.Agent
	switch {
	case watcher == "":
		watcher = "none; only the kubelet speaks for this node"
	case r.Health != nil && r.Health.Standby != "":
		watcher += ", while " + r.Health.Standby + " writes the conditions"
	}
	d.field("Agent", watcher, term.Plain)
	if r.HealthError != "" {
		d.field("Annotation", "cannot be read: "+r.HealthError, term.Warn)
	}
	var machine []string
	for _, part := range []string{r.Labels[fleet.LabelInstanceType], r.Labels[fleet.LabelZone], labelled("pool ", r.Pool()),
		r.AMI(), labelled("kernel ", r.Facts.Kernel), labelled("driver ", r.Labels[fleet.LabelDriver]), r.OS} {
		if part != "" {
			machine = append(machine, part)
		}
	}
	if r.Cordoned {
		machine = append(machine, "cordoned")
	}
	d.field("Machine", strings.Join(machine, ", "), term.Plain)
}

func labelled(what, value string) string {
	if value == "" {
		return ""
	}
	return what + value
}

// conditions are all columns, watched or not, and then whatever else the Node has.
func (d *describer) conditions() {
	d.section("Conditions", "")
	t := Table{Columns: []Column{
		{Name: "TYPE", Importance: 100}, {Name: "STATE", Importance: 90}, {Name: "REASON", Importance: 80, Flexible: true, Min: minReason},
		{Name: "SINCE", Importance: 70}, {Name: "HEARTBEAT", Importance: 50}, {Name: "REPAIR", Importance: 60},
	}}
	shown := map[string]bool{}
	var messages []fleet.Cell
	for _, c := range d.p.Row.Cells {
		shown[c.Condition] = true
		repair := d.p.Policy.RepairOf(d.p.Row.Facts, d.p.Pools, c.Condition)
		state := CellText(c, d.p.Now, false)
		state.S += " " + string(c.State)
		t.Rows = append(t.Rows, []Text{{c.Condition, term.Plain}, state, {dash(c.Reason), state.Role},
			{Age(d.p.Now, c.Since), term.Plain}, {Age(d.p.Now, c.Heartbeat), term.Plain}, RepairText(repair, d.p.Now)})
		if c.Message != "" {
			messages = append(messages, c)
		}
	}
	for _, c := range d.p.Row.Conditions {
		if !shown[c.Type] {
			t.Rows = append(t.Rows, []Text{{c.Type, term.Dim}, {c.Status, term.Dim}, {dash(c.Reason), term.Dim},
				{Age(d.p.Now, c.Since), term.Dim}, {Age(d.p.Now, c.Heartbeat), term.Dim}, {"–", term.Dim}})
		}
	}
	d.indented(t)
	if d.p.Row.More > 0 {
		d.add(d.s.Paint(term.Dim, fmt.Sprintf("  … and %d more", d.p.Row.More)))
	}
	for _, c := range messages {
		d.wrapped(c.Condition+": "+c.Message, "  ", term.Plain)
	}
}

func (d *describer) indented(t Table) {
	width := d.width
	if width > 0 {
		width = max(1, width-2)
	}
	for _, l := range t.Lines(d.s, width) {
		d.add("  " + l)
	}
}

func (d *describer) gpus() {
	r := d.p.Row
	if r.GPUs.Total == 0 {
		return
	}
	d.section("GPUs", fmt.Sprintf("%d/%d ok", r.GPUs.OK, r.GPUs.Total))
	if r.Health == nil || len(r.Health.GPUs) == 0 {
		d.wrapped("No agent says how each of them is; these are the device plugin's counts.", "  ", term.Dim)
		return
	}
	t := Table{Columns: []Column{
		{Name: "GPU", Importance: 50}, {Name: "PCI", Importance: 90}, {Name: "VERDICT", Importance: 100},
		{Name: "REASON", Importance: 95, Flexible: true, Min: minReason}, {Name: "SINCE", Importance: 80}, {Name: "UUID", Importance: 40},
	}}
	for i, g := range r.Health.GPUs {
		role := term.Bad
		switch g.Verdict {
		case "ok":
			role = term.Good
		case "warn":
			role = term.Warn
		}
		t.Rows = append(t.Rows, []Text{{strconv.Itoa(i), term.Plain}, {dash(g.PCI), term.Plain}, {string(g.Verdict), role},
			{dash(g.Reason), role}, {Age(d.p.Now, g.Since), term.Plain}, {dash(g.UUID), term.Dim}})
	}
	d.indented(t)
}
