package gpu

import (
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/nvmlhelper"
)

// Table is the last sample in words, with the verdicts by findings; nil when there is
// no sample.
func (g *GPUs) Table(findings []health.Finding) []gpustate.Row {
	state := g.monitor.Latest()
	if state == nil {
		return nil
	}
	return gpustate.Table(*state, func(gpu gpustate.GPU) (string, string) {
		verdict, reason := nvidia.VerdictOK, ""
		for _, f := range findings {
			if f.Subject != gpu.Subject() {
				continue
			}
			if v := nvidia.VerdictOfReason(f.Reason, f.Severity); v.Rank() > verdict.Rank() {
				verdict, reason = v, f.Reason
			}
		}
		return string(verdict), reason
	})
}

// Stop ends the helper, for those that use the checks without Run.
func (g *GPUs) Stop() { g.helper.Stop() }

// Verdicts are the verdicts on the GPUs, by the active findings.
func (g *GPUs) Verdicts(findings []annotation.Finding) []annotation.GPU {
	return nvmlhelper.Verdicts(g.monitor.Latest(), findings)
}
