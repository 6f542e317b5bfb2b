package incident

import (
	"fmt"
	"regexp"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// pages keeps which pages of memory had uncorrected errors: one that was contained is
// a Warning, several pages within a day are memory that breaks.
type pages struct{ seen map[string]time.Time }

const (
	pagesMany   = 3
	pagesWithin = 24 * time.Hour
)

// uncorrected makes the finding of one uncorrected error that was contained.
func (p *pages) uncorrected(r host.Record, now time.Time, subject string, fields map[string]any) []health.Finding {
	if pfn, ok := fields["pfn"].(string); ok && p.add(pfn, now) >= pagesMany {
		fields["pages"] = int64(len(p.seen))
		return []health.Finding{finding(r, health.KernelReady, health.Fatal, "MemoryUncorrectedError", "",
			fmt.Sprintf("At least %d pages of memory had uncorrected errors within a day", pagesMany), fields)}
	}
	return []health.Finding{finding(r, health.KernelReady, health.Warning, "MemoryUncorrectedWarning", subject,
		"Memory "+subject+" had an uncorrected error that was contained", fields)}
}

// add counts a page and returns how many there were within the window.
func (p *pages) add(pfn string, now time.Time) int {
	if p.seen == nil {
		p.seen = map[string]time.Time{}
	}
	for page, at := range p.seen {
		if now.Sub(at) > pagesWithin || len(p.seen) > 4*maxHeld {
			delete(p.seen, page)
		}
	}
	p.seen[pfn] = now
	return len(p.seen)
}

// What mm/memory-failure.c says of a page; "MCE 0x..." until 3.x.
var (
	pageResult   = regexp.MustCompile(`^(?:Memory failure: (?P<pfn>0x[0-9a-f]+): recovery action for .*: |MCE (?P<old>0x[0-9a-f]+): .* recovery: )(?P<result>Recovered|Delayed|Ignored|Failed)`)
	pagePoisoned = regexp.MustCompile(`^Memory failure: (?P<pfn>0x[0-9a-f]+): already hardware poisoned`)
	pageTouched  = regexp.MustCompile(`^Memory failure: (?P<pfn>0x[0-9a-f]+): |^(?:Memory failure|MCE) ?(?P<old>0x[0-9a-f]+): Killing .* due to hardware memory corruption`)
)

// memoryFailure reads what became of a page. A report of the firmware that is being
// read is about the same error: it is told once, with the worse verdict.
func (d *hardware) memoryFailure(r host.Record, now time.Time) []health.Finding {
	verdict, fatal := "", ""
	g := groups(pageResult, r.Message)
	switch {
	case g != nil:
		if verdict = g["result"]; verdict == "Failed" {
			fatal = "could not be taken out of use"
		}
	default:
		if g = groups(pagePoisoned, r.Message); g != nil {
			verdict, fatal = "already poisoned", "was used again after it had been found broken"
		} else if g = groups(pageTouched, r.Message); g == nil {
			return nil
		}
	}
	pfn := g["pfn"] + g["old"]
	fields := map[string]any{"pfn": pfn}
	subject := "page " + pfn
	if b := d.block; b != nil && severityRank[b.severity] >= 3 && (b.section == "memory" || b.section == "") {
		d.block = nil
		for k, v := range b.fields {
			fields[k] = v
		}
		fields["pfn"], fields["severity_text"] = pfn, b.severity
		if b.subject != "" {
			subject = b.subject
		}
	}
	d.take("mce")
	it := d.get("page " + pfn)
	if it == nil {
		f := d.pages.uncorrected(r, now, subject, fields)[0]
		it = d.hold("page "+pfn, now.Add(hardwareTime), f)
	}
	if verdict != "" {
		it.f.Fields["recovery"] = verdict
		it.due = now
	}
	if fatal != "" {
		it.f.Severity, it.f.Reason = health.Fatal, "MemoryUncorrectedError"
		it.f.Message = "A page of memory (" + it.f.Subject + ") " + fatal
	}
	return d.holder.Flush(now)
}
