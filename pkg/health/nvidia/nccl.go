package nvidia

import (
	"regexp"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// A crash inside NCCL, as the kernel's show_signal_msg (arch/x86/mm/fault.c) or
// do_general_protection print it. The process name may hold any character, so the
// last "[pid]: " before the fault ends it.
var ncclRE = regexp.MustCompile(`^(?:traps: )?(.{1,64})\[(\d{1,10})\](?:: segfault at |:? (?:trap |general protection ).*\bip:).* in (libnccl[^\s\[,]*)`)

// ncclFinding reads a crash in libnccl.
func ncclFinding(line string, r host.Record) (health.Finding, bool) {
	m := ncclRE.FindStringSubmatch(line)
	if m == nil {
		return health.Finding{}, false
	}
	f := health.Finding{
		Reason: "NvidiaNCCLError", Severity: health.Warning, Condition: health.AcceleratedHardwareReady,
		Subject:  m[1],
		Message:  m[1] + " crashed in " + m[3],
		Fields:   map[string]any{"process": m[1], "pid": number(m[2]), "library": m[3]},
		Evidence: r.Message, At: r.At, Boot: r.Boot, Position: r.Position,
		Origin: health.OriginKernel,
	}
	if !r.Kernel {
		f.Origin = health.OriginUserspace
		f.Fields["origin"], f.Fields["facility"] = string(health.OriginUserspace), int64(r.Facility)
	}
	return f, true
}
