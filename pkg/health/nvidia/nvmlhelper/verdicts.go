package nvmlhelper

import (
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
)

// Verdicts are the verdicts on each GPU: those of the sample (nil for none) in the
// driver's order, then those that only findings name. The worst finding about a GPU
// decides, and of equals the oldest.
func Verdicts(state *gpustate.State, findings []annotation.Finding) []annotation.GPU {
	var out []annotation.GPU
	if state != nil {
		for _, g := range state.GPUs {
			if g.UUID != "" || g.PCI != "" {
				out = append(out, annotation.GPU{UUID: g.UUID, PCI: g.PCI, Verdict: annotation.VerdictOK, Since: state.At.Truncate(time.Second)})
			}
		}
	}
	known := len(out)
	for _, f := range findings {
		uuid, pci := nvidia.SplitSubject(f.Subject)
		if pci == "" {
			continue
		}
		i := slices.IndexFunc(out, func(g annotation.GPU) bool { return g.PCI == pci || uuid != "" && g.UUID == uuid })
		if i < 0 {
			out = append(out, annotation.GPU{UUID: uuid, PCI: pci, Verdict: annotation.VerdictOK})
			i = len(out) - 1
		}
		g := &out[i]
		verdict := nvidia.VerdictOfReason(f.Reason, health.Severity(f.Severity))
		if f.Replace {
			verdict = nvidia.VerdictReplace
		}
		worse := verdict.Rank() - nvidia.Verdict(g.Verdict).Rank()
		if worse > 0 || worse == 0 && g.Reason != "" && f.Since.Before(g.Since) {
			g.Verdict, g.Reason, g.Since = annotation.Verdict(verdict), f.Reason, f.Since
		}
	}
	slices.SortFunc(out[known:], func(a, b annotation.GPU) int { return strings.Compare(a.PCI, b.PCI) })
	return out
}
