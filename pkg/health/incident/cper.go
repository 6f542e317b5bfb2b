package incident

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// cperBlock is one report of the firmware: lines that begin with the same "{N}", or,
// from AMD's decoder, without one. Its severity alone says nothing: the section says
// whether it is about memory, a processor or a PCIe device.
type cperBlock struct {
	seq      string
	first    host.Record
	due      time.Time
	severity string // corrected, recoverable, fatal, info
	section  string // memory, pcie, processor; "" while unknown
	fields   map[string]any
	subject  string
}

var (
	cperSeverity = regexp.MustCompile(`^ *(?:event severity|(?:Error \d+, type)): (\w+)`)
	cperOld      = regexp.MustCompile(`^ *section: \d+, severity: (\w+)`)
	cperSection  = regexp.MustCompile(`^ *section_type: (.*)`)
	cperFRU      = regexp.MustCompile(`^ *fru_text: (.*)`)
	cperAddress  = regexp.MustCompile(`^ *physical_address: 0x([0-9a-f]+)`)
	cperDevice   = regexp.MustCompile(`^ *device_id: (\S+)`)
	cperMemory   = regexp.MustCompile(`(?i)^ *error_type: .*\bECC\b|DIMM|DRAM|Memory Controller|memory scrub|scrub (?:un)?corrected`)
	amdSeverity  = regexp.MustCompile(`^(Corrected|Deferred|Uncorrected|System Fatal)[\w, ]* error`)
)

// cper takes one line of a report.
func (d *hardware) cper(r host.Record, now time.Time, seq, text string) []health.Finding {
	var out []health.Finding
	if d.block != nil && d.block.seq != seq {
		out = d.endBlock()
	}
	if d.block == nil {
		d.block = &cperBlock{seq: seq, first: r, fields: map[string]any{}}
		if n, err := strconv.ParseInt(seq, 10, 64); err == nil {
			d.block.fields["ghes_seq"] = n
		}
	}
	d.block.due = now.Add(hardwareTime)
	d.block.take(text)
	return out
}

// take reads one line.
func (b *cperBlock) take(text string) {
	for _, re := range []*regexp.Regexp{cperSeverity, cperOld, amdSeverity} {
		if m := re.FindStringSubmatch(text); m != nil {
			b.worse(m[1])
		}
	}
	if m := cperSection.FindStringSubmatch(text); m != nil {
		b.section = sectionOf(m[1])
	}
	if m := cperFRU.FindStringSubmatch(text); m != nil {
		b.fields["fru"] = clean(m[1])
		b.subject = clean(m[1])
	}
	if m := cperAddress.FindStringSubmatch(text); m != nil {
		b.fields["physical_address"] = "0x" + m[1]
		if n, err := strconv.ParseUint(m[1], 16, 64); err == nil {
			b.fields["pfn"] = "0x" + strconv.FormatUint(n>>12, 16)
		}
	}
	if m := cperDevice.FindStringSubmatch(text); m != nil {
		b.fields["device"] = clean(m[1])
		b.subject = clean(m[1])
	}
	if b.section == "" && cperMemory.MatchString(text) {
		b.section = "memory"
	}
}

// severityRank orders the severities of CPER and of AMD's decoder.
var severityRank = map[string]int{"info": 1, "corrected": 2, "deferred": 3, "recoverable": 3, "uncorrected": 3, "fatal": 4, "system fatal": 4}

func (b *cperBlock) worse(word string) {
	word = strings.ToLower(word)
	if severityRank[word] > severityRank[b.severity] {
		b.severity = word
	}
}

func sectionOf(text string) string {
	switch {
	case strings.Contains(text, "memory"):
		return "memory"
	case strings.Contains(text, "PCI"):
		return "pcie"
	}
	return "processor"
}

// endBlock makes the finding of the report that is being read.
func (d *hardware) endBlock() []health.Finding {
	b := d.block
	d.block = nil
	rank := severityRank[b.severity]
	if rank < 2 {
		return nil // for information, or no severity: not a report of an error
	}
	d.take("mce")
	b.fields["severity_text"] = b.severity
	switch b.section {
	case "memory":
		return d.memory(b, rank)
	case "pcie":
		if rank == 2 {
			return []health.Finding{finding(b.first, health.KernelReady, health.Info, "PCIeCorrectedError", b.subject,
				"The PCIe device "+b.subject+" had an error that its link corrected", b.fields)}
		}
		return []health.Finding{uncorrected(b.first, b.subject, b.fields)}
	}
	return []health.Finding{finding(b.first, health.KernelReady, health.Warning, "MachineCheck", b.subject,
		"The firmware reported a hardware error ("+b.severity+")", b.fields)}
}

func (d *hardware) memory(b *cperBlock, rank int) []health.Finding {
	subject := b.subject
	if subject == "" {
		subject = "memory"
	}
	switch rank {
	case 2:
		return []health.Finding{corrected(b.first, subject, b.fields)}
	case 4:
		return []health.Finding{finding(b.first, health.KernelReady, health.Fatal, "MemoryUncorrectedError", subject,
			"Memory "+subject+" had an error that could not be corrected nor contained", b.fields)}
	}
	return d.pages.uncorrected(b.first, d.last, subject, b.fields)
}
