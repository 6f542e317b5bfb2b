//go:build gpu

package nvmlhelper

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// TestGPURead reads the GPUs of this machine, and judges them; it changes nothing.
func TestGPURead(t *testing.T) {
	h := startHelper(t, Options{Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "NVMLHELPER_TEST_CHILD=libnvidia-ml.so.1")
		return cmd
	}})
	state, err := h.Poll(t.Context())
	var u *Unavailable
	if errors.As(err, &u) && (u.Cause == CauseNoLibrary || u.Cause == CauseNoDriver || u.Cause == CauseNotBuilt) {
		t.Skipf("SKIPPED: no NVIDIA GPU to test with: %v", u)
	}
	if err != nil {
		t.Fatal(err)
	}
	machine, err := host.New("/")
	if err != nil {
		t.Fatal(err)
	}
	want, err := gpustate.Expect(machine, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range gpustate.Table(state, func(gpustate.GPU) (string, string) { return "-", "" }) {
		t.Logf("%+v", row)
		if row.UUID == "-" || row.PCI == "-" || row.Temperature == "-" {
			t.Errorf("GPU %s has no name or no temperature", row.Index)
		}
	}
	if len(state.GPUs) == 0 || len(state.GPUs) > want.PCI {
		t.Errorf("%d GPUs, %d on the PCI bus", len(state.GPUs), want.PCI)
	}
	history := gpustate.History{Catalog: health.NewCatalog()}
	history.Observe(state, want)
	again, err := h.Poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range history.Observe(again, want) {
		t.Logf("found %s %s: %s", f.Severity, f.Reason, f.Message)
	}
}
