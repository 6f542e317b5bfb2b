package nvmlhelper

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
)

func TestTheWorstFindingDecidesTheVerdict(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	state := &gpustate.State{At: at, GPUs: []gpustate.GPU{{UUID: "GPU-0", PCI: "0000:00:00"}, {UUID: "GPU-1", PCI: "0000:01:00"}, {UUID: "GPU-2", PCI: "0000:02:00"}, {Lost: true}}}
	findings := []annotation.Finding{
		{Reason: "NvidiaXID31Warning", Severity: "Warning", Subject: "GPU-1 (0000:01:00)", Since: at.Add(1)},
		{Reason: "NvidiaXID79Error", Severity: "Fatal", Subject: "0000:01:00", Since: at.Add(2)},
		{Reason: "NvidiaXID48Error", Severity: "Fatal", Subject: "GPU-1 (0000:01:00)", Since: at.Add(3)},
		{Reason: "NvidiaXID119Error", Severity: "Fatal", Subject: "GPU-2 (0000:02:00)", Since: at.Add(4), Replace: true},
		{Reason: "NvidiaXID13Warning", Severity: "Warning", Subject: "0000:0f:00", Since: at.Add(5)},
		{Reason: "NvidiaSXID12020Error", Severity: "Fatal", Subject: "nvswitch0 (0000:0a:00)", Since: at},
		{Reason: "KernelOops", Severity: "Warning", Since: at},
	}
	want := []annotation.GPU{
		{UUID: "GPU-0", PCI: "0000:00:00", Verdict: "ok", Since: at},
		{UUID: "GPU-1", PCI: "0000:01:00", Verdict: "reboot", Reason: "NvidiaXID79Error", Since: at.Add(2)},
		{UUID: "GPU-2", PCI: "0000:02:00", Verdict: "replace", Reason: "NvidiaXID119Error", Since: at.Add(4)},
		{PCI: "0000:0f:00", Verdict: "warn", Reason: "NvidiaXID13Warning", Since: at.Add(5)},
	}
	if diff := cmp.Diff(want, Verdicts(state, findings)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Verdicts(nil, nil); len(got) != 0 {
		t.Errorf("without GPUs: %v", got)
	}
}
