package nvidia

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// sxidRE is a line of the NVSwitch driver:
// "nvidia-nvswitch1: SXid (PCI:0000:0a:00.0): 22013, Non-fatal, Link 57 …". Whether
// it says "Fatal" or "Non-fatal" is a label, not the verdict.
var sxidRE = regexp.MustCompile(`^nvidia-nvswitch(\d{1,3}): SXid \((?:PCI:)?(` + pciAddress + `)\): (\d{1,6})\b,? ?(.*)`)

// sxidEvent judges a line of the NVSwitch driver, nil when it is none or harmless.
func (d *Detector) sxidEvent(line string, r host.Record) *event {
	m := sxidRE.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	code := int(number(m[3]))
	e := &event{kind: nvswitch, pci: CanonicalPCI(m[2]), code: code, severity: health.Warning, record: r, verdict: VerdictWarn, fields: map[string]any{
		"sxid": int64(code), "nvswitch": number(m[1]), "pci": strings.ToLower(m[2]),
	}}
	if info, ok := d.tables.sxids[code]; ok {
		e.name, e.severity = info.name, info.severity
	}
	if link := plainLinkRE.FindStringSubmatch(m[4]); link != nil {
		e.fields["link"] = number(link[1])
	}
	if e.severity == health.Info {
		return nil
	}
	if e.severity == health.Fatal {
		e.verdict = VerdictReboot
	}
	e.reason = fmt.Sprintf("NvidiaSXID%d%s", code, suffix(e.severity))
	return e
}
