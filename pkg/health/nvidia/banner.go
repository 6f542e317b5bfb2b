package nvidia

import (
	"regexp"
	"strings"
)

// Banner lines are no faults. They tell what the other lines are about.
var (
	// Printed before the first Xid of a GPU in each boot.
	gpuBannerRE = regexp.MustCompile(`^NVRM: GPU at PCI:(` + pciAddress + `): (GPU-[0-9A-Za-z-]{8,64})`)
	serialRE    = regexp.MustCompile(`^NVRM: GPU Board Serial Number: (\S{1,64})`)
	// Printed when the driver is loaded, by the closed and the open one:
	// "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.133.20  …",
	// "NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64  580.65.06  …".
	driverRE = regexp.MustCompile(`^NVRM: loading NVIDIA UNIX .*?Kernel Module(?: for \S+)?\s+(\d{3,4})\.\d+`)
)

// Identity is what a GPU is called beside its PCI address.
type Identity struct {
	UUID   string
	Serial string
}

// identities knows the GPUs by canonical PCI address.
type identities struct {
	known map[string]Identity
	// last is the GPU whose banner was the last one read.
	last string
}

// maxIdentities bounds the memory that log text can claim.
const maxIdentities = 256

func (i *identities) set(pci string, id Identity) {
	pci = CanonicalPCI(pci)
	if _, ok := i.known[pci]; !ok && len(i.known) >= maxIdentities {
		return
	}
	i.known[pci] = id
}

// banner reads a line and says whether it was a banner.
func (d *Detector) banner(line string) bool {
	if m := gpuBannerRE.FindStringSubmatch(line); m != nil {
		d.gpus.last = CanonicalPCI(m[1])
		d.gpus.set(m[1], Identity{UUID: m[2], Serial: d.gpus.known[d.gpus.last].Serial})
		return true
	}
	if m := serialRE.FindStringSubmatch(line); m != nil {
		if id, ok := d.gpus.known[d.gpus.last]; ok {
			id.Serial = m[1]
			d.gpus.known[d.gpus.last] = id
		}
		return true
	}
	if m := driverRE.FindStringSubmatch(line); m != nil {
		d.driver = int(number(m[1]))
		return true
	}
	return strings.HasPrefix(line, "NVRM: loading NVIDIA UNIX")
}
