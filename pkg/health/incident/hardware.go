package incident

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// hardware reads errors of memory and processors: EDAC (drivers/edac), machine checks
// (arch/x86/kernel/cpu/mce, AMD's decoder in drivers/edac/mce_amd.c) and the reports of
// the firmware (drivers/acpi/apei, drivers/firmware/efi/cper.c). How memory failure
// handling fared is in pages.go.
//
// "Machine check events logged" says nothing by itself: the lines that follow name
// what it was, and replace it.
type hardware struct {
	holder
	clock
	block *cperBlock
	pages pages
}

// hardwareTime is how long the lines that belong together may take: pages are taken
// out of use by a work queue, a moment after the error was reported.
const hardwareTime = time.Second

var (
	edacError = regexp.MustCompile(`^EDAC (?:\S+ )?MC(?P<mc>\d+): (?:(?P<count>\d+) )?(?P<type>CE|UE)\b(?P<what>.*?)(?: on (?P<dimm>[^(]+?))? ?(?:\((?P<details>.*)\)|, label "(?P<label>[^"]*)".*|$)`)
	edacPage  = regexp.MustCompile(`\bpage[: ]0x([0-9a-f]+)`)
	mceLogged = regexp.MustCompile(`^(?:mce: )?\[Hardware Error\]: (?P<what>Machine check events logged|CPU \d+: Machine Check(?: Exception)?(?:: [0-9a-f]+)? Bank \d+)`)
	cperLine  = regexp.MustCompile(`^(?:BERT: |mce: )?(?:\{(?P<seq>\d+)\})?\[Hardware Error\]: ?(?P<text>.*)`)
)

func newHardware() *hardware { return &hardware{} }

func (*hardware) Literals() []string {
	return []string{"EDAC ", "[Hardware Error]", "Memory failure: ", "recovery: ", "hardware memory corruption"}
}

func (*hardware) Sources() []host.Source { return kernelLog }

func (d *hardware) Detect(r host.Record) []health.Finding {
	now := d.now(r)
	if g := groups(mceLogged, r.Message); g != nil {
		d.hold("mce", now.Add(hardwareTime), finding(r, health.KernelReady, health.Warning, "MachineCheck", "",
			"The processor reported a hardware error (machine check)", fieldsOf(g)))
		return nil
	}
	if g := groups(edacError, r.Message); g != nil {
		d.take("mce")
		return append(d.reported(g["type"]), d.edac(r, now, g)...)
	}
	if g := groups(cperLine, r.Message); g != nil {
		return d.cper(r, now, g["seq"], g["text"])
	}
	return d.memoryFailure(r, now)
}

// reported ends a report that is being read before EDAC says which memory it was about:
// then it is told once, by EDAC, unless the report is worse.
func (d *hardware) reported(kind string) []health.Finding {
	if d.block == nil {
		return nil
	}
	rank := severityRank[d.block.severity]
	if d.block.section == "memory" && (kind == "CE" && rank == 2 || kind == "UE" && rank == 3) || d.block.section == "" && d.block.seq == "" {
		d.block = nil
		return nil
	}
	return d.endBlock()
}

func (d *hardware) edac(r host.Record, now time.Time, g map[string]string) []health.Finding {
	fields := fieldsOf(map[string]string{"mc": g["mc"]}, "mc")
	if g["count"] != "" {
		fields["count"], _ = strconv.ParseInt(g["count"], 10, 64)
	}
	dimm := clean(g["dimm"])
	if dimm == "" {
		dimm = clean(g["label"])
	}
	if dimm == "" || dimm == "unknown memory" {
		dimm = "mc" + g["mc"]
	} else {
		fields["dimm"] = dimm
	}
	if strings.Contains(g["details"], "OVERFLOW") {
		fields["overflow"] = true
	}
	if g["type"] == "CE" {
		return []health.Finding{corrected(r, dimm, fields)}
	}
	if m := edacPage.FindStringSubmatch(r.Message); m != nil {
		fields["pfn"] = "0x" + m[1]
	}
	return d.pages.uncorrected(r, now, dimm, fields)
}

func corrected(r host.Record, subject string, fields map[string]any) health.Finding {
	return finding(r, health.KernelReady, health.Warning, "MemoryCorrectedError", subject,
		"Memory "+subject+" had errors that were corrected", fields)
}

// Flush implements Detector.
func (d *hardware) Flush(now time.Time) []health.Finding {
	var out []health.Finding
	if d.block != nil && (now.IsZero() || !now.Before(d.block.due)) {
		out = d.endBlock()
	}
	return append(out, d.holder.Flush(now)...)
}

// Due implements Detector.
func (d *hardware) Due() time.Time {
	due := d.holder.Due()
	if d.block != nil && (due.IsZero() || d.block.due.Before(due)) {
		return d.block.due
	}
	return due
}
