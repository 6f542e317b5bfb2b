package gpustate

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
)

var t0 = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// node is a sample of n healthy GPUs, changed by f.
func node(minute, n int, f func([]GPU)) State {
	s := State{At: t0.Add(time.Duration(minute) * time.Minute)}
	for i := range n {
		s.GPUs = append(s.GPUs, GPU{
			Index: i, UUID: fmt.Sprint("GPU-", i), PCI: fmt.Sprintf("0000:%02x:00", i),
			ECC: &ECC{}, Rows: &Rows{}, RetiredPages: ptr(0), Links: map[int]bool{0: true, 1: true},
			Fabric: &Fabric{State: fabricCompleted, Health: ptr(healthyMask)}, ClockReasons: ptr(uint64(0)),
			PCIeReplays: ptr(uint64(100)), Recovery: ptr(nvidia.RecoveryNone),
		})
	}
	if f != nil {
		f(s.GPUs)
	}
	return s
}

// healthyMask: nothing degraded (2 = false), configured right (1), partition
// assigned (1), fabric manager connected (1).
const healthyMask = uint32(2 | 2<<2 | 2<<4 | 2<<6 | 1<<8 | 1<<12 | 1<<14)

// observe returns what is found in the last sample.
func observe(want Expected, samples ...State) []health.Finding {
	h := &History{Catalog: health.NewCatalog()}
	var found []health.Finding
	for _, s := range samples {
		found = h.Observe(s, want)
	}
	return found
}

func told(found []health.Finding) []string {
	var out []string
	for _, f := range found {
		out = append(out, fmt.Sprintf("%s %s %s", f.Subject, f.Reason, f.Severity))
	}
	return out
}

func TestTwoSamples(t *testing.T) {
	const gpu1 = "GPU-1 (0000:01:00) "
	for _, tt := range []struct {
		name  string
		first func([]GPU)
		then  func([]GPU)
		want  []string
	}{
		{name: "healthy"},
		{name: "lost", then: func(g []GPU) { g[1].Lost = true }, want: []string{gpu1 + "NvidiaGPULost Fatal"}},
		{name: "lost with its name", then: func(g []GPU) { g[1] = GPU{Index: 1, Lost: true} }, want: []string{gpu1 + "NvidiaGPULost Fatal"}},
		{name: "reset required", then: func(g []GPU) { g[1].ResetRequired = true }, want: []string{gpu1 + "NvidiaGPULost Fatal"}},
		{name: "asks for a reset", then: func(g []GPU) { g[1].Recovery = ptr(nvidia.RecoveryGPUReset) }, want: []string{gpu1 + "NvidiaRecoveryAction Fatal"}},
		{name: "asks for a reboot", then: func(g []GPU) { g[1].Recovery = ptr(nvidia.RecoveryNodeReboot) }, want: []string{gpu1 + "NvidiaRecoveryAction Fatal"}},
		{name: "asks to drain P2P", then: func(g []GPU) { g[1].Recovery = ptr(nvidia.RecoveryDrainP2P) }, want: []string{gpu1 + "NvidiaRecoveryAction Warning"}},
		{name: "an action of a later driver", then: func(g []GPU) { g[1].Recovery = ptr(nvidia.RecoveryAction(42)) }, want: []string{gpu1 + "NvidiaRecoveryAction Warning"}},
		{name: "no recovery field", then: func(g []GPU) { g[1].Recovery = nil }},
		{name: "remap failed", then: func(g []GPU) { g[1].Rows.Failure = true }, want: []string{gpu1 + "NvidiaRowRemapFailure Fatal"}},
		{name: "remap pending", then: func(g []GPU) { g[1].Rows.Pending = true }, want: []string{gpu1 + "NvidiaRowRemapPending Warning"}},
		{name: "remaps done", then: func(g []GPU) { g[1].Rows.Uncorrectable = 3 }},
		{name: "pages retired", then: func(g []GPU) { g[1].RetiredPages = ptr(1) }, want: []string{gpu1 + "NvidiaPageRetirement Warning"}},
		{name: "pages retired before", first: func(g []GPU) { g[1].RetiredPages = ptr(5) }, then: func(g []GPU) { g[1].RetiredPages = ptr(5) }},
		{name: "replays", then: func(g []GPU) { g[1].PCIeReplays = ptr(uint64(111)) }, want: []string{gpu1 + "NvidiaPCIeError Warning"}},
		{name: "few replays", then: func(g []GPU) { g[1].PCIeReplays = ptr(uint64(110)) }},
		{name: "replay counter back at 0", then: func(g []GPU) { g[1].PCIeReplays = ptr(uint64(0)) }},
		{name: "contained errors of memory", then: func(g []GPU) { g[1].ECC.VolatileUncorrected = 9 }},
		{name: "no values at all", first: func(g []GPU) { g[1] = GPU{Index: 1, UUID: "GPU-1", PCI: "0000:01:00"} }},
		{name: "persistence off", then: func(g []GPU) { g[1].Persistence = ptr(false) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := observe(Expected{PCI: 2}, node(0, 2, tt.first), node(1, 2, tt.then))
			if diff := cmp.Diff(tt.want, told(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheDriverTakesItsRequestBack(t *testing.T) {
	got := observe(Expected{}, node(0, 1, func(g []GPU) { g[0].Recovery = ptr(nvidia.RecoveryGPUReset) }), node(1, 1, nil))
	if len(got) != 1 || !got[0].Clears || got[0].Severity != health.Info || got[0].Subject != "GPU-0 (0000:00:00)" {
		t.Errorf("found %+v", got)
	}
}

func TestCountOfDevices(t *testing.T) {
	for _, tt := range []struct {
		name   string
		counts []int
		want   Expected
		found  bool
	}{
		{"all", []int{8, 8}, Expected{PCI: 8, InstanceType: 8}, false},
		{"one is missing once", []int{8, 7}, Expected{PCI: 8}, false},
		{"one is missing", []int{7, 7}, Expected{PCI: 8}, true},
		{"and back", []int{7, 7, 8}, Expected{PCI: 8}, false},
		{"gone from the bus too", []int{7, 7}, Expected{PCI: 7, InstanceType: 8, TypeName: "p5.48xlarge"}, true},
		{"fewer than configured", []int{7, 7}, Expected{PCI: 7, Configured: 8}, true},
		{"type unknown", []int{7, 7}, Expected{PCI: 7}, false},
		{"more than expected", []int{8, 8}, Expected{PCI: 7, InstanceType: 4}, false},
		{"all are missing", []int{0, 0}, Expected{PCI: 8}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var samples []State
			for i, n := range tt.counts {
				samples = append(samples, node(i, n, nil))
			}
			got := observe(tt.want, samples...)
			if found := len(got) == 1 && got[0].Reason == "NvidiaDeviceCountMismatch" && got[0].Severity == health.Fatal; found != tt.found || len(got) > 1 {
				t.Errorf("found %v", told(got))
			}
		})
	}
}

func TestFabricHealthByField(t *testing.T) {
	with := func(f healthField, v uint32) uint32 { return healthyMask&^(f.width<<f.shift) | v<<f.shift }
	for _, tt := range []struct {
		name    string
		fabric  Fabric
		samples int
		want    []string
	}{
		{"healthy", Fabric{State: 3, Health: ptr(healthyMask)}, 20, nil},
		{"not supported", Fabric{State: 0, Status: 3}, 20, nil},
		{"all fields not supported", Fabric{State: 3, Health: ptr(uint32(0))}, 20, nil},
		{"in progress", Fabric{State: 2, Status: 999}, 20, nil},
		{"not started", Fabric{State: 1}, 20, nil},
		{"failed once", Fabric{State: 3, Status: 999}, 1, nil},
		{"failed", Fabric{State: 3, Status: 999}, 2, []string{"NvidiaFabricError Fatal"}},
		{"route unhealthy once", Fabric{State: 3, Health: ptr(with(routeUnhealthy, 1))}, 1, nil},
		{"route unhealthy", Fabric{State: 3, Health: ptr(with(routeUnhealthy, 1))}, 2, []string{"NvidiaFabricError Fatal"}},
		{"degraded bandwidth", Fabric{State: 3, Health: ptr(with(degradedBandwidth, 1))}, 1, []string{"NvidiaFabricWarning Warning"}},
		{"route recovery", Fabric{State: 3, Health: ptr(with(routeRecovery, 1))}, 2, []string{"NvidiaFabricWarning Warning"}},
		{"access timeout recovery", Fabric{State: 3, Health: ptr(with(accessTimeoutRecovery, 1))}, 2, []string{"NvidiaFabricWarning Warning"}},
		{"no partition", Fabric{State: 3, Health: ptr(with(incorrectConfiguration, 4))}, 20, nil},
		{"wrong GUID for 9 minutes", Fabric{State: 3, Health: ptr(with(incorrectConfiguration, 2))}, 10, nil},
		{"wrong GUID for 10 minutes", Fabric{State: 3, Health: ptr(with(incorrectConfiguration, 2))}, 11, []string{"NvidiaFabricError Fatal"}},
		{"unheard of configuration", Fabric{State: 3, Health: ptr(with(incorrectConfiguration, 13))}, 11, []string{"NvidiaFabricError Fatal"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var samples []State
			for i := range tt.samples {
				samples = append(samples, node(i, 1, func(g []GPU) { g[0].Fabric = &tt.fabric }))
			}
			var want []string
			for _, w := range tt.want {
				want = append(want, "GPU-0 (0000:00:00) "+w)
			}
			if diff := cmp.Diff(want, told(observe(Expected{}, samples...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSlowClocksAreJudgedOverTenMinutes(t *testing.T) {
	for _, tt := range []struct {
		name    string
		bit     uint64
		minutes int
		slow    func(minute int) bool
		want    []string
	}{
		{"power brake, always", 0x80, 11, func(int) bool { return true }, []string{"GPU-0 (0000:00:00) NvidiaPowerError Warning"}},
		{"hot, always", 0x40, 11, func(int) bool { return true }, []string{"GPU-0 (0000:00:00) NvidiaThermalError Warning"}},
		{"hot, too short a time", 0x40, 8, func(int) bool { return true }, nil},
		{"hot, every second minute", 0x40, 20, func(m int) bool { return m%2 == 0 }, nil},
		{"hot, two of three minutes", 0x40, 22, func(m int) bool { return m%3 != 0 }, []string{"GPU-0 (0000:00:00) NvidiaThermalError Warning"}},
		{"hot, long ago", 0x40, 30, func(m int) bool { return m < 15 }, nil},
		{"software's power cap", 0x4, 20, func(int) bool { return true }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var samples []State
			for i := range tt.minutes {
				samples = append(samples, node(i, 1, func(g []GPU) {
					if tt.slow(i) {
						g[0].ClockReasons = ptr(tt.bit)
					}
				}))
			}
			if diff := cmp.Diff(tt.want, told(observe(Expected{}, samples...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNVLinksThatGoDown(t *testing.T) {
	down := func(g []GPU) { g[0].Links = map[int]bool{0: true, 1: false} }
	mig := func(g []GPU) { down(g); g[0].MIG = true }
	for _, tt := range []struct {
		name    string
		samples []func([]GPU)
		want    bool
	}{
		{"down once", []func([]GPU){nil, down}, false},
		{"down", []func([]GPU){nil, down, down}, true},
		{"still down", []func([]GPU){nil, down, down, down, down}, true},
		{"up again", []func([]GPU){nil, down, down, nil}, false},
		{"flapping", []func([]GPU){nil, down, nil, down, nil, down}, false},
		{"never was up", []func([]GPU){down, down, down}, false},
		{"partitioned", []func([]GPU){nil, mig, mig, mig}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var samples []State
			for i, f := range tt.samples {
				samples = append(samples, node(i, 1, f))
			}
			got := observe(Expected{}, samples...)
			if found := len(got) == 1 && got[0].Reason == "NvidiaNVLinkError" && got[0].Severity == health.Fatal; found != tt.want {
				t.Errorf("found %v, want %v", told(got), tt.want)
			}
		})
	}
}

func TestARepairNeedsTheClientToLetGo(t *testing.T) {
	for name, f := range map[string]func([]GPU){
		"lost":     func(g []GPU) { g[1].Lost = true },
		"reset":    func(g []GPU) { g[1].ResetRequired = true },
		"recovery": func(g []GPU) { g[1].Recovery = ptr(nvidia.RecoveryDrainAndReset) },
	} {
		if !node(0, 2, f).NeedsRelease() {
			t.Errorf("%s: no release", name)
		}
	}
	if node(0, 2, nil).NeedsRelease() {
		t.Error("healthy GPUs are released")
	}
}
