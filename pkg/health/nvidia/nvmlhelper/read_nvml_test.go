//go:build linux && cgo && !nonvml

package nvmlhelper

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	mock "github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
)

// mockLibrary makes a mock server answer all that read asks; ret is what the calls
// that the mock lacks return.
func mockLibrary(s *mock.Server, ret nvml.Return) *nvmlLibrary {
	for _, device := range s.Devices {
		d := device.(*mock.Device)
		busID := [32]int8{}
		for i, c := range []byte(d.PciBusID) {
			busID[i] = int8(c)
		}
		d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{BusId: busID}, nvml.SUCCESS }
		d.GetSerialFunc = func() (string, nvml.Return) { return "165", ret }
		d.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 40, ret }
		d.GetTemperatureThresholdFunc = func(nvml.TemperatureThresholds) (uint32, nvml.Return) { return 90, ret }
		d.GetPcieReplayCounterFunc = func() (int, nvml.Return) { return 3, ret }
		d.GetPersistenceModeFunc = func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, ret }
		d.GetTotalEccErrorsFunc = func(kind nvml.MemoryErrorType, since nvml.EccCounterType) (uint64, nvml.Return) {
			return uint64(10*kind) + uint64(since), ret
		}
		d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 1, 2, true, false, ret }
		d.GetRowRemapperHistogramFunc = func() (nvml.RowRemapperHistogramValues, nvml.Return) {
			return nvml.RowRemapperHistogramValues{None: 1}, ret
		}
		d.GetRetiredPagesFunc = func(nvml.PageRetirementCause) ([]uint64, nvml.Return) { return []uint64{1, 2}, ret }
		d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
			if link >= 18 {
				return 0, nvml.ERROR_INVALID_ARGUMENT
			}
			return nvml.FEATURE_ENABLED, ret
		}
		d.GetCurrentClocksEventReasonsFunc = func() (uint64, nvml.Return) { return 0x40, ret }
		d.GetCurrentClocksThrottleReasonsFunc = func() (uint64, nvml.Return) { return 0x80, ret }
		d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
			values[0].NvmlReturn = uint32(ret)
			binary.NativeEndian.PutUint32(values[0].Value[:4], uint32(nvidia.RecoveryDrainAndReset))
			return nvml.SUCCESS
		}
	}
	return &nvmlLibrary{api: s, fabric: func(nvml.Device) (*gpustate.Fabric, nvml.Return) { return &gpustate.Fabric{State: 3}, ret }}
}

func TestReadingEveryServer(t *testing.T) {
	for name, s := range map[string]*mock.Server{"dgxa100": dgxa100.New(), "dgxh100": dgxh100.New(), "dgxh200": dgxh200.New(), "dgxb200": dgxb200.New()} {
		t.Run(name, func(t *testing.T) {
			state, err := mockLibrary(s, nvml.SUCCESS).read()
			if err != nil || len(state.GPUs) != 8 || state.Driver == "" {
				t.Fatalf("state %+v, %v", state, err)
			}
			g := state.GPUs[3]
			if g.PCI != "0000:03:00" || g.UUID == "" || *g.Temperature != 40 || *g.SlowdownTemperature != 90 || *g.PCIeReplays != 3 || !*g.Persistence {
				t.Errorf("GPU %+v", g)
			}
			if e := g.ECC; e.VolatileCorrected != 0 || e.AggregateCorrected != 1 || e.VolatileUncorrected != 10 || e.AggregateUncorrected != 11 {
				t.Errorf("ECC %+v", e)
			}
			if r := g.Rows; r.Correctable != 1 || r.Uncorrectable != 2 || !r.Pending || r.Failure || *r.Exhausted != 1 {
				t.Errorf("rows %+v", r)
			}
			if len(g.Links) != 18 || !g.Links[7] || *g.RetiredPages != 4 || *g.ClockReasons != 0x40 || *g.Recovery != nvidia.RecoveryDrainAndReset || g.Fabric.State != 3 {
				t.Errorf("GPU %+v", g)
			}
		})
	}
}

func TestWhatAGPUDoesNotOfferIsAbsent(t *testing.T) {
	for _, ret := range []nvml.Return{nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND, nvml.ERROR_UNKNOWN, nvml.ERROR_NO_PERMISSION} {
		state, err := mockLibrary(dgxh100.New(), ret).read()
		if err != nil {
			t.Fatal(err)
		}
		g := state.GPUs[0]
		if g.Temperature != nil || g.ECC != nil || g.Rows != nil || g.RetiredPages != nil || g.Links != nil || g.ClockReasons != nil || g.Recovery != nil || g.Fabric != nil || g.Lost || g.ResetRequired {
			t.Errorf("returning %d: %+v", ret, g)
		}
	}
}

func TestLostGPUsAreCounted(t *testing.T) {
	s := dgxh100.New()
	l := mockLibrary(s, nvml.SUCCESS)
	handle := s.DeviceGetHandleByIndexFunc
	s.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		switch i {
		case 2:
			return nil, nvml.ERROR_GPU_IS_LOST
		case 5:
			return nil, nvml.ERROR_NO_PERMISSION
		}
		return handle(i)
	}
	s.Devices[4].(*mock.Device).GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 0, nvml.ERROR_RESET_REQUIRED }
	state, err := l.read()
	if err != nil || len(state.GPUs) != 7 || !state.GPUs[2].Lost || !state.GPUs[4].ResetRequired || state.GPUs[3].Lost {
		t.Errorf("state %+v, %v", state, err)
	}
}

func TestFunctionsThatALibraryLacksAreNotCalled(t *testing.T) {
	s := dgxh100.New()
	l := mockLibrary(s, nvml.SUCCESS)
	s.LookupSymbolFunc = func(symbol string) error {
		if symbol == "nvmlDeviceGetCurrentClocksThrottleReasons" {
			return nil
		}
		return errors.New("no such symbol")
	}
	state, err := l.read()
	if err != nil {
		t.Fatal(err)
	}
	if g := state.GPUs[0]; *g.ClockReasons != 0x80 || g.Fabric != nil || g.Rows != nil {
		t.Errorf("GPU %+v", g)
	}
}
