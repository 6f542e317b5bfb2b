package nvidia

import (
	"regexp"
	"strings"
)

// pciAddress is a PCI address as the driver prints it: "0000:3b:00", with or
// without a function, and with a domain of four digits or, from NVML, eight.
const pciAddress = `(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?`

var pciRE = regexp.MustCompile(`^` + pciAddress + `$`)

// CanonicalPCI brings the spellings of a device's PCI address to one form, by which
// devices are compared: "00000000:3B:00.0" becomes "0000:3b:00". A GPU is always
// function 0 of its slot, so the function is left out.
func CanonicalPCI(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if i := strings.IndexByte(s, '.'); i >= 0 {
		s = s[:i]
	}
	switch domain, rest, _ := strings.Cut(s, ":"); {
	case strings.Count(s, ":") == 1:
		return "0000:" + s
	case len(domain) > 4 && strings.Trim(domain[:len(domain)-4], "0") == "":
		return domain[len(domain)-4:] + ":" + rest
	}
	return s
}
