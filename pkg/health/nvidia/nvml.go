package nvidia

import (
	"fmt"
	"regexp"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// SourceNVML is the source of records that NVML's events are turned into, so that
// they go the way of the kernel's lines.
const SourceNVML host.Source = "nvml"

// XidRecord turns an Xid event of NVML into a record like the line that the driver
// prints for it: the two become one incident, whichever comes first. It is false for
// codes whose meaning is in the text, which only the log has: 74, 144 to 150, 154.
func XidRecord(pci string, code int, at time.Time) (host.Record, bool) {
	if code <= 0 || pci == "" || code == 74 || code >= 144 && code <= 150 || code == 154 {
		return host.Record{}, false
	}
	return nvmlRecord(fmt.Sprintf("%s(PCI:%s): %d, told by NVML", xidPrefix, pci, code), at), true
}

// MemoryErrorRecord turns NVML's event of a memory error that could not be corrected
// into a record. The kernel has no line of the same meaning.
func MemoryErrorRecord(uuid, pci string, at time.Time) host.Record {
	return nvmlRecord(fmt.Sprintf("NVML: double-bit memory error on GPU %s", Subject(uuid, pci)), at)
}

func nvmlRecord(message string, at time.Time) host.Record {
	return host.Record{Source: SourceNVML, Kernel: true, Priority: host.Unknown, Facility: host.FacilityKernel, At: at, Message: message}
}

var memoryErrorRE = regexp.MustCompile(`^NVML: double-bit memory error on GPU (.+)$`)

func memoryErrorFinding(r host.Record) (health.Finding, bool) {
	if r.Source != SourceNVML {
		return health.Finding{}, false
	}
	m := memoryErrorRE.FindStringSubmatch(r.Message)
	if m == nil {
		return health.Finding{}, false
	}
	uuid, pci := SplitSubject(m[1])
	return health.Finding{
		Reason: "NvidiaDoubleBitError", Severity: health.Fatal, Condition: health.AcceleratedHardwareReady,
		Subject: m[1], Message: "GPU " + m[1] + ": an error in memory that could not be corrected",
		Fields:   map[string]any{"gpu_uuid": uuid, "pci": pci, "verdict": string(VerdictReset)},
		Evidence: r.Message, At: r.At, Origin: health.OriginCheck,
	}, true
}
