package nvmlhelper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// gpuHost is a machine with the driver loaded and n GPUs on the PCI bus.
func gpuHost(t *testing.T, n int) *host.Host {
	t.Helper()
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("sys/module/nvidia/version", "570.133.20\n")
	for i := range n {
		dir := "sys/bus/pci/devices/0000:0" + string(rune('0'+i)) + ":00.0/"
		write(dir+"vendor", "0x10de\n")
		write(dir+"class", "0x030200\n")
	}
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// fakePoll is a Poll whose answers a test sets.
type fakePoll struct {
	state gpustate.State
	err   error
}

func (p *fakePoll) poll(context.Context) (gpustate.State, error) { return p.state, p.err }

func twoGPUs() gpustate.State {
	return gpustate.State{GPUs: []gpustate.GPU{{Index: 0, UUID: "GPU-0", PCI: "0000:00:00"}, {Index: 1, UUID: "GPU-1", PCI: "0000:01:00"}}}
}

func reasons(found []health.Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, f.Reason)
	}
	return out
}

func run(t *testing.T, c check.Check, h *host.Host, want ...string) {
	t.Helper()
	got, err := c.Run(t.Context(), h)
	if err != nil {
		t.Fatalf("%s: %v", c.Name(), err)
	}
	if !slices.Equal(reasons(got), want) {
		t.Errorf("%s finds %v, want %v", c.Name(), reasons(got), want)
	}
}

func TestADeviceGoesAndComesBack(t *testing.T) {
	p := &fakePoll{state: twoGPUs()}
	m := &Monitor{Poll: p.poll, Catalog: health.NewCatalog()}
	gpus, driver := m.Checks()[0], m.Checks()[1]
	h := gpuHost(t, 2)
	run(t, gpus, h)
	p.state.GPUs = p.state.GPUs[:1]
	run(t, gpus, h)
	run(t, gpus, h, "NvidiaDeviceCountMismatch")
	run(t, driver, h)
	p.state = twoGPUs()
	run(t, gpus, h)
}

func TestAHungDriverIsTheDriversFault(t *testing.T) {
	p := &fakePoll{err: ErrHung}
	m := &Monitor{Poll: p.poll, Catalog: health.NewCatalog()}
	gpus, driver := m.Checks()[0], m.Checks()[1]
	h := gpuHost(t, 2)
	if _, err := gpus.Run(t.Context(), h); !errors.Is(err, ErrHung) {
		t.Errorf("the check of GPUs is not blind: %v", err)
	}
	run(t, driver, h, "NvidiaDriverHung")
	p.err = ErrBusy
	_, _ = gpus.Run(t.Context(), h)
	if got, err := driver.Run(t.Context(), h); err == nil {
		t.Errorf("a call that has not returned is a clean sample: %v", got)
	}
	p.err, p.state = nil, twoGPUs()
	run(t, gpus, h)
	run(t, driver, h)
}

func TestNVMLUnavailableIsAWarningAfterFiveMinutes(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &fakePoll{err: &Unavailable{Cause: CauseMismatch, Detail: "x"}}
	m := &Monitor{Poll: p.poll, Catalog: health.NewCatalog(), Now: func() time.Time { return now }}
	gpus, driver := m.Checks()[0], m.Checks()[1]
	h := gpuHost(t, 2)
	for minute := range 8 {
		_, _ = gpus.Run(t.Context(), h)
		got, err := driver.Run(t.Context(), h)
		if err != nil || (len(got) == 1) != (minute > 5) {
			t.Errorf("after %d minutes: %v, %v", minute, reasons(got), err)
		}
		for _, f := range got {
			if f.Reason != "NvidiaNVMLUnavailable" || f.Severity != health.Warning {
				t.Errorf("found %s %s", f.Reason, f.Severity)
			}
		}
		now = now.Add(time.Minute)
	}
	p.err, p.state = nil, twoGPUs()
	run(t, gpus, h)
	run(t, driver, h)
}

func TestNothingToCheck(t *testing.T) {
	bare, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &fakePoll{state: twoGPUs()}
	m := &Monitor{Poll: p.poll, Catalog: health.NewCatalog()}
	for _, c := range m.Checks() {
		if _, err := c.Run(t.Context(), bare); !errors.Is(err, check.ErrNoData) {
			t.Errorf("%s without a driver: %v", c.Name(), err)
		}
	}
	p.err = &Unavailable{Cause: CauseNotBuilt}
	for _, c := range m.Checks() {
		if _, err := c.Run(t.Context(), gpuHost(t, 2)); !errors.Is(err, check.ErrNoData) {
			t.Errorf("%s in a build without NVML: %v", c.Name(), err)
		}
	}
}

func TestReleasedGPUsAreNotPolled(t *testing.T) {
	released := true
	polls := 0
	m := &Monitor{Catalog: health.NewCatalog(), Released: func() bool { return released }, Poll: func(context.Context) (gpustate.State, error) {
		polls++
		return twoGPUs(), nil
	}}
	gpus := m.Checks()[0]
	h := gpuHost(t, 2)
	if _, err := gpus.Run(t.Context(), h); !errors.Is(err, ErrReleased) || polls != 0 {
		t.Errorf("released: %v after %d polls", err, polls)
	}
	released = false
	run(t, gpus, h)
}

func TestChecksListTheirReasons(t *testing.T) {
	catalog := health.NewCatalog()
	for _, c := range (&Monitor{}).Checks() {
		for _, reason := range c.Reasons() {
			if r, ok := catalog.Lookup(reason); !ok || r.Condition != c.Condition() {
				t.Errorf("%s: %s is not in the catalogue: %+v", c.Name(), reason, r)
			}
		}
	}
}

func TestGPUsAreIdentified(t *testing.T) {
	known := map[string]string{}
	p := &fakePoll{state: twoGPUs()}
	m := &Monitor{Poll: p.poll, Catalog: health.NewCatalog(), OnIdentity: func(pci string, id nvidia.Identity) { known[pci] = id.UUID }}
	run(t, m.Checks()[0], gpuHost(t, 2))
	if known["0000:01:00"] != "GPU-1" || len(known) != 2 {
		t.Errorf("known: %v", known)
	}
}
