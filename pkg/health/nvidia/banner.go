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

// banner reads a line and says whether it was a banner.
func (d *Detector) banner(line string) bool {
	if m := gpuBannerRE.FindStringSubmatch(line); m != nil {
		d.lastBanner = m[1]
		d.gpus.Set(m[1], Identity{UUID: m[2]})
		return true
	}
	if m := serialRE.FindStringSubmatch(line); m != nil {
		if id := d.gpus.Get(d.lastBanner); id.UUID != "" {
			d.gpus.Set(d.lastBanner, Identity{UUID: id.UUID, Serial: m[1]})
		}
		return true
	}
	if m := driverRE.FindStringSubmatch(line); m != nil {
		d.driver = int(number(m[1]))
		return true
	}
	return strings.HasPrefix(line, "NVRM: loading NVIDIA UNIX")
}
