//go:build linux && cgo && !nonvml

package nvmlhelper

import (
	"encoding/binary"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
)

// reader reads one GPU. What a GPU does not offer stays nil.
type reader struct {
	l *nvmlLibrary
	g gpustate.GPU
}

// ok says that a call has given a value, and notes when it was told that the GPU is
// gone.
func (r *reader) ok(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST:
		r.g.Lost = true
	case nvml.ERROR_RESET_REQUIRED:
		r.g.ResetRequired = true
	}
	return ret == nvml.SUCCESS
}

func (r *reader) device(d nvml.Device) {
	g := &r.g
	if v, ret := d.GetUUID(); r.ok(ret) {
		g.UUID = v
	}
	if v, ret := d.GetPciInfo(); r.ok(ret) {
		g.PCI = busID(v)
	}
	if v, ret := d.GetName(); r.ok(ret) {
		g.Name = v
	}
	if v, ret := d.GetSerial(); r.ok(ret) {
		g.Serial = v
	}
	if v, ret := d.GetTemperature(nvml.TEMPERATURE_GPU); r.ok(ret) {
		g.Temperature = &v
	}
	if v, ret := d.GetTemperatureThreshold(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN); r.ok(ret) {
		g.SlowdownTemperature = &v
	}
	if v, ret := d.GetPcieReplayCounter(); r.ok(ret) && v >= 0 {
		n := uint64(v)
		g.PCIeReplays = &n
	}
	if v, ret := d.GetPersistenceMode(); r.ok(ret) {
		on := v == nvml.FEATURE_ENABLED
		g.Persistence = &on
	}
	if mode, _, ret := d.GetMigMode(); r.ok(ret) {
		g.MIG = mode == nvml.DEVICE_MIG_ENABLE
	}
	r.memory(d)
	r.links(d)
	r.clocks(d)
	r.recovery(d)
	if r.l.has("nvmlDeviceGetGpuFabricInfoV") {
		if v, ret := r.l.fabric(d); r.ok(ret) {
			g.Fabric = v
		}
	}
}

func (r *reader) memory(d nvml.Device) {
	var ecc gpustate.ECC
	all := true
	for _, c := range []struct {
		kind  nvml.MemoryErrorType
		since nvml.EccCounterType
		to    *uint64
	}{
		{nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC, &ecc.VolatileCorrected},
		{nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC, &ecc.VolatileUncorrected},
		{nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC, &ecc.AggregateCorrected},
		{nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC, &ecc.AggregateUncorrected},
	} {
		v, ret := d.GetTotalEccErrors(c.kind, c.since)
		if !r.ok(ret) {
			all = false
			break
		}
		*c.to = v
	}
	if all {
		r.g.ECC = &ecc
	}
	if r.l.has("nvmlDeviceGetRemappedRows") {
		if correctable, uncorrectable, pending, failure, ret := d.GetRemappedRows(); r.ok(ret) {
			r.g.Rows = &gpustate.Rows{Correctable: correctable, Uncorrectable: uncorrectable, Pending: pending, Failure: failure}
		}
	}
	if r.g.Rows != nil && r.l.has("nvmlDeviceGetRowRemapperHistogram") {
		if h, ret := d.GetRowRemapperHistogram(); r.ok(ret) {
			r.g.Rows.Exhausted = &h.None
		}
	}
	pages, known := 0, false
	for _, cause := range []nvml.PageRetirementCause{nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS, nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR} {
		if v, ret := d.GetRetiredPages(cause); r.ok(ret) {
			pages, known = pages+len(v), true
		}
	}
	if known {
		r.g.RetiredPages = &pages
	}
}

func (r *reader) links(d nvml.Device) {
	for link := range nvml.NVLINK_MAX_LINKS {
		state, ret := d.GetNvLinkState(link)
		if !r.ok(ret) {
			return
		}
		if r.g.Links == nil {
			r.g.Links = map[int]bool{}
		}
		r.g.Links[link] = state == nvml.FEATURE_ENABLED
	}
}

// clocks reads why the clocks are lower than they could be. Drivers before R535 know
// the function by its older name.
func (r *reader) clocks(d nvml.Device) {
	switch {
	case r.l.has("nvmlDeviceGetCurrentClocksEventReasons"):
		if v, ret := d.GetCurrentClocksEventReasons(); r.ok(ret) {
			r.g.ClockReasons = &v
		}
	case r.l.has("nvmlDeviceGetCurrentClocksThrottleReasons"):
		if v, ret := d.GetCurrentClocksThrottleReasons(); r.ok(ret) {
			r.g.ClockReasons = &v
		}
	}
}

// recovery reads what the driver asks for. Drivers that do not know the field say so
// in the value's own return code.
func (r *reader) recovery(d nvml.Device) {
	values := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	if !r.ok(d.GetFieldValues(values)) || !r.ok(nvml.Return(values[0].NvmlReturn)) {
		return
	}
	a := nvidia.RecoveryAction(binary.NativeEndian.Uint32(values[0].Value[:4]))
	r.g.Recovery = &a
}

func readFabric(d nvml.Device) (*gpustate.Fabric, nvml.Return) {
	v, ret := d.GetGpuFabricInfoV().V2()
	if ret != nvml.SUCCESS {
		return nil, ret
	}
	return &gpustate.Fabric{State: v.State, Status: v.Status, Health: &v.HealthMask}, ret
}
