package nvmlhelper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// unavailableAfter is how long NVML may be unavailable before that is told: drivers
// are installed and upgraded while the agent runs.
const unavailableAfter = 5 * time.Minute

// Monitor makes two checks of a Helper: one of the GPUs, and one of the driver, whose
// samples are good for something even when there is no sample of the GPUs.
type Monitor struct {
	// Poll takes a sample: Helper.Poll.
	Poll func(context.Context) (gpustate.State, error)
	// Close closes NVML: Helper.Close. Optional.
	Close func(context.Context) error
	// Catalog gives the severities.
	Catalog *health.Catalog
	// Released, if set, says that NVML is to be kept closed now.
	Released func() bool
	// OnIdentity, if set, is told what the GPUs are called.
	OnIdentity func(pci string, id nvidia.Identity)
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	mu      sync.Mutex
	history gpustate.History
	sampled bool
	err     error
	// expected is how many GPUs there must be.
	expected int
	// since is when NVML became unavailable; zero while it is not.
	since time.Time
}

func (m *Monitor) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// Expect says how many GPUs there must be; 0, as at first, goes by the instance type,
// and a negative number expects none.
func (m *Monitor) Expect(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expected = n
}

// Checks returns the checks. They belong to one scheduler.
func (m *Monitor) Checks() []check.Check { return []check.Check{gpuCheck{m}, driverCheck{m}} }

// Latest returns the last sample, nil before the first.
func (m *Monitor) Latest() *gpustate.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.history.Previous()
}

// driverLoaded says that there is a driver that NVML could talk to. Labels and the
// files in /dev, which are made on demand, say nothing about that.
func driverLoaded(h *host.Host) bool { return h.Exists("/sys/module/nvidia/version") }

// gpuCheck takes the samples.
type gpuCheck struct{ m *Monitor }

func (gpuCheck) Name() string                    { return "gpus" }
func (gpuCheck) Condition() health.ConditionType { return health.AcceleratedHardwareReady }
func (gpuCheck) Interval() time.Duration         { return time.Minute }
func (gpuCheck) Reasons() []string {
	return []string{
		"NvidiaDeviceCountMismatch", "NvidiaGPULost", "NvidiaRecoveryAction", "NvidiaRowRemapFailure", "NvidiaRowRemapPending",
		"NvidiaPageRetirement", "NvidiaNVLinkError", "NvidiaFabricError", "NvidiaFabricWarning", "NvidiaPCIeError",
		"NvidiaPowerError", "NvidiaThermalError",
	}
}

func (c gpuCheck) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	m := c.m
	if !driverLoaded(h) {
		m.forget()
		return nil, check.ErrNoData
	}
	if m.Released != nil && m.Released() {
		if m.Close != nil {
			_ = m.Close(ctx) // closed already, or hung: the next sample tells
		}
		m.note(nil, ErrReleased)
		return nil, ErrReleased
	}
	state, err := m.Poll(ctx)
	if err != nil {
		m.note(nil, err)
		var u *Unavailable
		if errors.As(err, &u) && u.Cause == CauseNotBuilt {
			return nil, check.ErrNoData
		}
		return nil, err
	}
	m.mu.Lock()
	expected := m.expected
	m.mu.Unlock()
	want, err := gpustate.Expect(h, expected)
	if err != nil {
		return nil, fmt.Errorf("count the GPUs on the PCI bus: %w", err)
	}
	if m.OnIdentity != nil {
		for _, g := range state.GPUs {
			if g.UUID != "" && g.PCI != "" {
				m.OnIdentity(g.PCI, nvidia.Identity{UUID: g.UUID, Serial: g.Serial})
			}
		}
	}
	return m.note(func() []health.Finding { return m.history.Observe(state, want) }, nil), nil
}

// note keeps how a sample went, for the check of the driver.
func (m *Monitor) note(observe func() []health.Finding, err error) []health.Finding {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history.Catalog = m.Catalog
	m.sampled, m.err = true, err
	var u *Unavailable
	switch {
	case !errors.As(err, &u):
		m.since = time.Time{}
	case m.since.IsZero():
		m.since = m.now()
	}
	if observe == nil {
		return nil
	}
	return observe()
}

// forget is for a driver that was unloaded.
func (m *Monitor) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.history, m.sampled, m.err, m.since = gpustate.History{}, false, nil, time.Time{}
}

// driverCheck judges how the samples went.
type driverCheck struct{ m *Monitor }

const (
	reasonHung        = "NvidiaDriverHung"
	reasonUnavailable = "NvidiaNVMLUnavailable"
)

func (driverCheck) Name() string                    { return "gpu-driver" }
func (driverCheck) Condition() health.ConditionType { return health.AcceleratedHardwareReady }
func (driverCheck) Interval() time.Duration         { return time.Minute }
func (driverCheck) Reasons() []string               { return []string{reasonHung, reasonUnavailable} }

func (c driverCheck) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	m := c.m
	if !driverLoaded(h) {
		return nil, check.ErrNoData
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var u *Unavailable
	switch {
	case !m.sampled:
		return nil, check.ErrNoData
	case errors.Is(m.err, ErrHung):
		f := check.Finding(m.Catalog, reasonHung, "", "the NVIDIA driver hangs: a call into it does not return")
		f.Fields = map[string]any{"timeout": true, "verdict": string(nvidia.VerdictReboot)}
		return []health.Finding{f}, nil
	case errors.As(m.err, &u):
		if u.Cause == CauseNotBuilt {
			return nil, check.ErrNoData
		}
		if m.now().Sub(m.since) <= unavailableAfter {
			return nil, nil
		}
		f := check.Finding(m.Catalog, reasonUnavailable, "", "GPUs are not watched: "+u.Error())
		f.Fields = map[string]any{"cause": string(u.Cause)}
		return []health.Finding{f}, nil
	}
	return nil, m.err
}
