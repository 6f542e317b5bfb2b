package nvmlhelper

import (
	"fmt"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// SourceNVML is the source of records that NVML's events are turned into.
const SourceNVML host.Source = "nvml"

// Record turns an Xid event into the record that the driver prints for it, so that
// the two become one incident, whichever comes first. It is false for other events,
// and for codes whose meaning is in the text, which only the log has: 74, 144 to
// 150, and 154.
func (e Event) Record() (host.Record, bool) {
	if e.Xid == 0 || e.PCI == "" || e.Xid == 74 || e.Xid >= 144 && e.Xid <= 150 || e.Xid == 154 {
		return host.Record{}, false
	}
	return host.Record{
		Source: SourceNVML, Kernel: true, Priority: host.Unknown, Facility: host.FacilityKernel, At: e.At,
		Message: fmt.Sprintf("NVRM: Xid (PCI:%s): %d, told by NVML", e.PCI, e.Xid),
	}, true
}

// Finding turns a memory error event into a finding. It is false for other events.
func (e Event) Finding(c *health.Catalog) (health.Finding, bool) {
	if !e.DoubleBit {
		return health.Finding{}, false
	}
	subject := nvidia.Subject(e.UUID, e.PCI)
	f := check.Finding(c, "NvidiaDoubleBitError", subject, "GPU "+subject+": an error in memory that could not be corrected")
	f.At = e.At
	f.Fields = map[string]any{"gpu_uuid": e.UUID, "pci": e.PCI, "verdict": string(nvidia.VerdictReset)}
	return f, true
}
