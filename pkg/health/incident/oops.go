package incident

import (
	"regexp"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// oops reads what the kernel says about faults of its own: oopses, BUG and panics
// (arch/*/mm/fault.c, arch/*/kernel/traps.c, lib/bug.c, kernel/panic.c). One fault is
// told in several lines, of which the first names it best; the line with "[#N]" counts
// the oopses of this boot. A crash that a person asked for is no fault.
type oops struct {
	holder
	clock
	// told is until when further lines belong to the fault that was told last.
	told time.Time
	// asked is until when crashes are what a person asked for.
	asked time.Time
}

const (
	// oopsTime is how long the lines that name one fault may take.
	oopsTime = time.Second
	// askedTime is how long after SysRq-c a crash is what was asked for.
	askedTime = time.Minute
)

var (
	oopsSysrq = regexp.MustCompile(`^sysrq: (?:SysRq : )?Trigger a crash|^SysRq : Trigger a crash`)
	oopsPanic = regexp.MustCompile(`^Kernel panic - not syncing: ?(?P<reason>.*)`)
	oopsBugAt = regexp.MustCompile(`^[Kk]ernel BUG at (?P<file>.+):(?P<line>\d+)!`)
	oopsNull  = regexp.MustCompile(`^(?:BUG: )?(?:kernel|Kernel|[Uu]nable to handle(?: kernel)?) NULL pointer dereference(?:,? (?:on \w+ )?(?:address:?|at(?: virtual address)?))? *(?P<address>(?:0x)?[0-9a-f]+|\(null\))?`)
	oopsPage  = regexp.MustCompile(`^(?:BUG: )?[Uu]nable to handle (?:kernel )?(?:page fault for address:?|paging request(?: for (?:unknown|data|instruction fetch))? at(?: virtual address)?|(?:access to user memory outside uaccess routines|execute from non-executable memory|read from unreadable memory|write to read-only memory)[a-z ]*) *(?P<address>(?:0x)?[0-9a-f]+)?`)
	oopsCount = regexp.MustCompile(`^(?P<what>[A-Za-z][^\[\]]*?)[:,] *(?:probably for [^\[]*: *)?(?:[0-9a-f]{1,16} )?\[#(?P<oops>\d+)\]`)
	// mm/slub.c names the cache: "BUG kmalloc-64 (Not tainted): Redzone overwritten".
	oopsBug = regexp.MustCompile(`^BUG(?:: | (?P<cache>\S{1,64}) \((?:Not tainted|Tainted: [^)]*)\): )(?P<what>.+)`)
	// oopsOther are lines that begin with "BUG:" and have a reason of their own.
	oopsOther = regexp.MustCompile(`^BUG: (?:soft lockup|workqueue lockup|NMI watchdog|arch topology borken)`)
	notStable = regexp.MustCompile(`\b(?:0x)?[0-9a-f]*\d[0-9a-f]*\b`)
)

func newOops() *oops { return &oops{} }

func (*oops) Literals() []string {
	return []string{"rigger a crash", "Kernel panic - not syncing", "ernel BUG at ", "NULL pointer dereference", "nable to handle ", "BUG: ", "ainted", " [#"}
}

func (*oops) Sources() []host.Source { return kernelLog }

func (d *oops) Detect(r host.Record) []health.Finding {
	now := d.now(r)
	if oopsSysrq.MatchString(r.Message) {
		d.asked = now.Add(askedTime)
		return []health.Finding{finding(r, health.KernelReady, health.Info, "KernelPanic", "",
			"Somebody crashed the kernel on purpose (SysRq-c)", map[string]any{"deliberate": true})}
	}
	reason, kind, fields := classify(r.Message)
	switch {
	case reason == "" || now.Before(d.asked):
		return nil
	case reason == "KernelPanic":
		return d.panicked(r, now, fields)
	case now.Before(d.told):
		// A later line of the same fault: it may tell which oops it is.
		if it := d.get("bug"); it != nil && fields["oops"] != nil {
			it.f.Fields["oops"] = fields["oops"]
			it.due = now
			return d.Flush(now)
		}
		return nil
	}
	d.told = now.Add(oopsTime)
	if reason == "KernelOops" {
		return []health.Finding{finding(r, health.KernelReady, health.Warning, reason, "",
			"The kernel made an invalid access ("+kind+")", fields)}
	}
	f := finding(r, health.KernelReady, health.Warning, reason, kind, "The kernel found an error in itself: "+kind, fields)
	if fields["file"] == nil {
		return []health.Finding{f}
	}
	d.hold("bug", now.Add(blockTime), f)
	return nil
}

func (d *oops) panicked(r host.Record, now time.Time, fields map[string]any) []health.Finding {
	why, _ := fields["reason"].(string)
	fields["previous_boot"] = true // it was read by a kernel that started after it
	severity := health.Warning
	if strings.Contains(why, "sysrq triggered crash") {
		severity = health.Info
		fields["deliberate"] = true
		d.asked = now.Add(askedTime)
	}
	return append(d.Flush(time.Time{}), finding(r, health.KernelReady, severity, "KernelPanic", "", "The kernel panicked: "+why, fields))
}

// classify says which fault a line names, if any: its reason, its kind in words that
// do not change from time to time, and its fields.
func classify(line string) (reason, kind string, fields map[string]any) {
	if g := groups(oopsPanic, line); g != nil {
		return "KernelPanic", "panic", fieldsOf(g)
	}
	if g := groups(oopsBugAt, line); g != nil {
		return "KernelBug", clean(g["file"] + ":" + g["line"]), fieldsOf(g, "line")
	}
	if g := groups(oopsNull, line); g != nil {
		return "KernelOops", "null-deref", with(fieldsOf(g), "null-deref")
	}
	if g := groups(oopsPage, line); g != nil {
		return "KernelOops", "page-fault", with(fieldsOf(g), "page-fault")
	}
	if g := groups(oopsCount, line); g != nil {
		kind := oopsKind(g["what"])
		delete(g, "what")
		return "KernelOops", kind, with(fieldsOf(g, "oops"), kind)
	}
	if g := groups(oopsBug, line); g != nil && !oopsOther.MatchString(line) {
		what, _, _ := strings.Cut(g["what"], "  ")
		what = clean(notStable.ReplaceAllString(what, "N"))
		if g["cache"] != "" {
			return "KernelBug", clean(g["cache"]) + " " + what, fieldsOf(g)
		}
		return "KernelBug", what, map[string]any{"what": clean(g["what"])}
	}
	return "", "", nil
}

func with(fields map[string]any, kind string) map[string]any {
	fields["kind"] = kind
	return fields
}

// oopsKind names the exception of a line with "[#N]".
func oopsKind(what string) string {
	for _, k := range []struct{ text, kind string }{
		{"general protection", "gpf"}, {"divide error", "divide"}, {"invalid opcode", "invalid-opcode"},
		{"double fault", "double-fault"}, {"stack segment", "stack-segment"}, {"int3", "int3"},
		{"BUG", "bug"},
	} {
		if strings.Contains(what, k.text) {
			return k.kind
		}
	}
	return "oops"
}
