package nvidia

import (
	"regexp"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// A GPU that is gone when the driver probes it is told by one printk of three lines
// and no Xid (kernel-open/nvidia/nv-pci.c, and RmInitAdapter in the closed part). It
// reaches us as one message, or as three when a tool has cut it at the newlines.
var (
	offBusRE      = regexp.MustCompile(`^NVRM: The NVIDIA GPU (` + pciAddress + `)\s+(?:NVRM: )?\(PCI ID: ([0-9a-fA-F]{4}:[0-9a-fA-F]{4})\) installed in this system has\s+(?:NVRM: )?fallen off the bus`)
	offBusFirstRE = regexp.MustCompile(`^NVRM: The NVIDIA GPU (` + pciAddress + `)$`)
	offBusIDRE    = regexp.MustCompile(`^(?:NVRM: )?\(PCI ID: ([0-9a-fA-F]{4}:[0-9a-fA-F]{4})\) installed in this system has$`)
	offBusLastRE  = regexp.MustCompile(`^(?:NVRM: )?fallen off the bus and is not responding`)
	// A GPU that is lost while it runs: "NVRM: GPU 0000:01:00.0: GPU has fallen off
	// the bus.", in older drivers "NVRM: GPU at 0000:01:00.0 has fallen off the bus.".
	fallenRE = regexp.MustCompile(`^NVRM: GPU (?:at )?(?:PCI:)?(` + pciAddress + `):? (?:GPU )?has fallen off the bus`)
)

// busReader puts the three lines together.
type busReader struct {
	pci, id string
	record  host.Record
}

// whole reads the message in one piece.
func (b *busReader) whole(message string) (pci, id string, ok bool) {
	if m := offBusRE.FindStringSubmatch(message); m != nil {
		*b = busReader{}
		return m[1], m[2], true
	}
	return "", "", false
}

// line takes one line of the message. Any other line of the driver's in between
// means that the message was about something else.
func (b *busReader) line(line string, r host.Record) (pci, id string, first host.Record, ok bool) {
	if m := offBusFirstRE.FindStringSubmatch(line); m != nil {
		*b = busReader{pci: m[1], record: r}
		return "", "", r, false
	}
	if b.pci == "" || r.Kernel != b.record.Kernel {
		return "", "", r, false
	}
	if m := offBusIDRE.FindStringSubmatch(line); m != nil {
		b.id = m[1]
		return "", "", r, false
	}
	if b.id != "" && offBusLastRE.MatchString(line) {
		pci, id, first = b.pci, b.id, b.record
		*b = busReader{}
		return pci, id, first, true
	}
	if strings.HasPrefix(line, "NVRM: ") {
		*b = busReader{}
	}
	return "", "", r, false
}

// offBusEvent is an Xid 79 that the driver did not print.
func (d *Detector) offBusEvent(pci, id string, r host.Record) *event {
	e := d.xidEvent(xidLine{pci: CanonicalPCI(pci), code: 79, gpuInstance: -1, computeInstance: -1}, r)
	delete(e.fields, "xid")
	e.fields["implied_xid"] = int64(79)
	if id != "" {
		e.fields["pci_id"] = strings.ToLower(id)
	}
	return e
}
