package gpustate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
)

// Expected is how many GPUs there should be, by sources other than NVML. 0 means
// that the source does not say.
type Expected struct {
	// PCI is how many the kernel sees on the PCI bus and may be used.
	PCI int
	// InstanceType is how many a machine of this type has, and TypeName its name.
	InstanceType int
	TypeName     string
	// Configured is how many the configuration says.
	Configured int
}

// Judge finds what is wrong by a sample and the one before it; prev is nil at first.
// It has no memory of its own: what takes longer than two samples is
// History's.
func Judge(c *health.Catalog, prev *State, now State, want Expected) []health.Finding {
	j := judge{catalog: c, prev: prev}
	j.count(now, want)
	for _, g := range now.GPUs {
		before := prev.find(g)
		j.reach(g)
		j.recovery(g, before)
		j.memory(g, before)
		j.fabric(g, before)
		j.pcie(g, before, now.At)
	}
	return j.found
}

type judge struct {
	catalog *health.Catalog
	prev    *State
	found   []health.Finding
}

func (j *judge) add(reason, subject, message string, fields map[string]any) *health.Finding {
	f := check.Finding(j.catalog, reason, subject, message)
	f.Fields = fields
	if f.Fields == nil {
		f.Fields = map[string]any{}
	}
	if _, ok := f.Fields["verdict"]; !ok {
		verdict := nvidia.VerdictWarn
		if f.Severity == health.Fatal {
			verdict = nvidia.VerdictReset
		}
		f.Fields["verdict"] = string(verdict)
	}
	j.found = append(j.found, f)
	return &j.found[len(j.found)-1]
}

// about adds a finding about one GPU.
func (j *judge) about(reason string, g GPU, message string, fields map[string]any) *health.Finding {
	if fields == nil {
		fields = map[string]any{}
	}
	fields["gpu_index"] = int64(g.Index)
	if g.UUID != "" {
		fields["gpu_uuid"] = g.UUID
	}
	if g.PCI != "" {
		fields["pci"] = g.PCI
	}
	return j.add(reason, g.Subject(), fmt.Sprintf("GPU %s: %s", g.Subject(), message), fields)
}

// count compares NVML's count with the bus and the instance type, in two samples.
func (j *judge) count(now State, want Expected) {
	if j.prev == nil {
		return
	}
	short := func(expected int) bool { return len(now.GPUs) < expected && len(j.prev.GPUs) < expected }
	fields := map[string]any{"count": int64(len(now.GPUs)), "verdict": string(nvidia.VerdictReplace)}
	switch {
	case short(want.PCI):
		fields["expected"] = int64(want.PCI)
		j.add("NvidiaDeviceCountMismatch", "", fmt.Sprintf("the driver manages %d GPUs of %d on the PCI bus", len(now.GPUs), want.PCI), fields)
	case short(want.Configured):
		fields["expected"] = int64(want.Configured)
		j.add("NvidiaDeviceCountMismatch", "", fmt.Sprintf("the driver manages %d GPUs; the configuration expects %d", len(now.GPUs), want.Configured), fields)
	case short(want.InstanceType):
		fields["expected"] = int64(want.InstanceType)
		j.add("NvidiaDeviceCountMismatch", "", fmt.Sprintf("the driver manages %d GPUs; a %s has %d", len(now.GPUs), want.TypeName, want.InstanceType), fields)
	}
}

// reach tells the GPUs that NVML can no longer reach.
func (j *judge) reach(g GPU) {
	switch {
	case g.Lost:
		j.about("NvidiaGPULost", g, "lost: the driver cannot reach it any more", map[string]any{"verdict": string(nvidia.VerdictReboot)})
	case g.ResetRequired:
		j.about("NvidiaGPULost", g, "cannot be used before it has been reset", nil)
	}
}

// recovery tells what the driver asks for, and when it no longer does.
func (j *judge) recovery(g GPU, before *GPU) {
	if g.Recovery == nil {
		return
	}
	a := *g.Recovery
	if a == nvidia.RecoveryNone {
		if before != nil && before.Recovery != nil && *before.Recovery != nvidia.RecoveryNone {
			f := j.about("NvidiaRecoveryAction", g, "the driver needs no recovery action any more", map[string]any{"verdict": string(nvidia.VerdictOK)})
			f.Severity, f.Clears = health.Info, true
		}
		return
	}
	f := j.about("NvidiaRecoveryAction", g, "the driver asks to "+a.String(), map[string]any{"recovery_action": int64(a), "verdict": string(a.Verdict())})
	f.Severity = a.Severity()
}

// memory tells of errors in the GPU's memory.
func (j *judge) memory(g GPU, before *GPU) {
	if r := g.Rows; r != nil && r.Failure {
		j.about("NvidiaRowRemapFailure", g, "a bad row of memory could not be replaced: no spare rows are left", map[string]any{"verdict": string(nvidia.VerdictReplace)})
	}
	if r := g.Rows; r != nil && r.Pending {
		j.about("NvidiaRowRemapPending", g, "a bad row of memory is replaced at the next reset", map[string]any{"verdict": string(nvidia.VerdictReset)})
	}
	if before == nil {
		return
	}
	if g.RetiredPages != nil && before.RetiredPages != nil && *g.RetiredPages > *before.RetiredPages {
		j.about("NvidiaPageRetirement", g, "more pages of memory were retired", map[string]any{"pages": int64(*g.RetiredPages)})
	}
}

// fabric tells of an NVLink fabric that does not work, in two samples.
func (j *judge) fabric(g GPU, before *GPU) {
	if g.Fabric == nil || g.Fabric.State == fabricNotSupported {
		return
	}
	if warnings := g.Fabric.warnings(); len(warnings) > 0 {
		j.about("NvidiaFabricWarning", g, "NVLink fabric: "+strings.Join(warnings, ", "), nil)
	}
	if before == nil {
		return
	}
	switch {
	case g.Fabric.unhealthyRoute() && before.Fabric.unhealthyRoute():
		j.about("NvidiaFabricError", g, "NVLink fabric: the route is unhealthy", map[string]any{"cause": "route"})
	case g.Fabric.failed() && before.Fabric.failed():
		j.about("NvidiaFabricError", g, "NVLink fabric: registration failed", map[string]any{"cause": "state", "status": int64(g.Fabric.Status)})
	}
}

// maxReplays is how many PCIe replays a minute are tolerated.
const maxReplays = 10

func (j *judge) pcie(g GPU, before *GPU, now time.Time) {
	if before == nil || g.PCIeReplays == nil || before.PCIeReplays == nil || *g.PCIeReplays < *before.PCIeReplays {
		return
	}
	grown := *g.PCIeReplays - *before.PCIeReplays
	minutes := max(now.Sub(j.prev.At).Minutes(), 1)
	if float64(grown)/minutes > maxReplays {
		j.about("NvidiaPCIeError", g, "PCIe packets are sent again and again", map[string]any{"replays": int64(grown)})
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

func join(numbers []int) string {
	words := make([]string, len(numbers))
	for i, n := range numbers {
		words[i] = itoa(n)
	}
	return strings.Join(words, ", ")
}

func int64s(numbers []int) []int64 {
	out := make([]int64, len(numbers))
	for i, n := range numbers {
		out[i] = int64(n)
	}
	return out
}
