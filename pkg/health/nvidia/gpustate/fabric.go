package gpustate

// Fabric is what NVML says about a GPU's place in an NVLink fabric.
type Fabric struct {
	// State is nvmlGpuFabricState_t: 0 not supported, 1 not started, 2 in progress, 3
	// completed.
	State uint8 `json:"state"`
	// Status is an nvmlReturn_t; it counts only when State is completed.
	Status uint32 `json:"status"`
	// Health is the mask NVML_GPU_FABRIC_HEALTH_MASK_*; nil when the driver is too old.
	Health *uint32 `json:"health,omitempty"`
}

const (
	fabricNotSupported = 0
	fabricCompleted    = 3
)

// healthField is a field of the fabric health mask: where it begins, and the mask of
// its bits, which nvml.h calls its width.
type healthField struct{ shift, width uint32 }

// The fields of the mask, as nvml.h defines them. For those of two bits 0 is "not
// supported", 1 true and 2 false; what true means differs from field to field.
var (
	degradedBandwidth      = healthField{0, 0x3}
	routeRecovery          = healthField{2, 0x3}
	routeUnhealthy         = healthField{4, 0x3}
	accessTimeoutRecovery  = healthField{6, 0x3}
	incorrectConfiguration = healthField{8, 0xf}
)

const (
	fieldTrue = 1
	// Of the incorrect configurations, 0 is "not supported", 1 is none, and 4 is a GPU
	// without a partition, which is how a GPU waits for one.
	firstIncorrect = 2
	noPartition    = 4
)

func (f healthField) get(mask uint32) uint32 { return mask >> f.shift & f.width }

// unhealthyRoute says that the fabric cannot reach the GPU as it should.
func (f *Fabric) unhealthyRoute() bool {
	return f != nil && f.Health != nil && routeUnhealthy.get(*f.Health) == fieldTrue
}

// failed says that registration with the fabric has ended, and not well.
func (f *Fabric) failed() bool { return f != nil && f.State == fabricCompleted && f.Status != 0 }

// misconfigured returns which incorrect configuration there is, in words.
func (f *Fabric) misconfigured() string {
	if f == nil || f.Health == nil {
		return ""
	}
	n := incorrectConfiguration.get(*f.Health)
	if n < firstIncorrect || n == noPartition {
		return ""
	}
	words := map[uint32]string{
		2: "wrong system GUID", 3: "wrong chassis serial number", 5: "too few NVLinks",
		6: "incompatible GPU firmware", 7: "invalid location", 8: "invalid GPU state",
	}
	if w, ok := words[n]; ok {
		return w
	}
	return "incorrect configuration " + itoa(int(n))
}

// warnings returns what is not as good as it should be, in words.
func (f *Fabric) warnings() []string {
	if f == nil || f.Health == nil {
		return nil
	}
	var out []string
	for _, w := range []struct {
		field healthField
		words string
	}{
		{degradedBandwidth, "degraded bandwidth"},
		{routeRecovery, "route recovery in progress"},
		{accessTimeoutRecovery, "access timeout recovery in progress"},
	} {
		if w.field.get(*f.Health) == fieldTrue {
			out = append(out, w.words)
		}
	}
	return out
}
