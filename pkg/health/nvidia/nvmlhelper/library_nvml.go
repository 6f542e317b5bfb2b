//go:build linux && cgo && !nonvml

package nvmlhelper

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
)

// Available says whether this build can load NVML.
const Available = true

// newLibrary returns NVML at path. It is loaded when it is opened (dlopen(3)), so
// that nodes without it are no problem.
func newLibrary(path string) library {
	var options []nvml.LibraryOption
	if path != "" {
		options = append(options, nvml.WithLibraryPath(path))
	}
	return &nvmlLibrary{api: nvml.New(options...), fabric: readFabric}
}

type nvmlLibrary struct {
	api nvml.Interface
	set nvml.EventSet
	// fabric reads the fabric info; go-nvml's mocks cannot stand in for it.
	fabric func(nvml.Device) (*gpustate.Fabric, nvml.Return)
}

func (l *nvmlLibrary) open() error {
	switch ret := l.api.Init(); ret {
	case nvml.SUCCESS, nvml.ERROR_ALREADY_INITIALIZED:
	default:
		return unavailable(ret)
	}
	l.set = nil
	l.register()
	return nil
}

// unavailable puts a failure of nvmlInit into words. It asks the library for none:
// there may be no library.
func unavailable(ret nvml.Return) *Unavailable {
	switch ret {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return &Unavailable{CauseNoLibrary, "libnvidia-ml.so.1 cannot be loaded"}
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return &Unavailable{CauseMismatch, "libnvidia-ml.so.1 and the loaded kernel module have different versions"}
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return &Unavailable{CauseNoDriver, "the kernel module is not loaded, or /dev/nvidiactl is missing"}
	case nvml.ERROR_NO_PERMISSION:
		return &Unavailable{CausePermission, "no permission to open /dev/nvidiactl"}
	}
	return &Unavailable{CauseOther, fmt.Sprintf("nvmlInit returns %d", int(ret))}
}

// register asks for the events that each GPU offers.
func (l *nvmlLibrary) register() {
	const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError
	set, ret := l.api.EventSetCreate()
	if ret != nvml.SUCCESS {
		return
	}
	registered := false
	count, _ := l.api.DeviceGetCount()
	for i := range count {
		d, ret := l.api.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			continue
		}
		offered, ret := d.GetSupportedEventTypes()
		if ret != nvml.SUCCESS || offered&wanted == 0 {
			continue
		}
		if d.RegisterEvents(offered&wanted, set) == nvml.SUCCESS {
			registered = true
		}
	}
	if !registered {
		_ = set.Free()
		return
	}
	l.set = set
}

func (l *nvmlLibrary) wait(timeout time.Duration) (*Event, error) {
	if l.set == nil {
		return nil, fmt.Errorf("no GPU offers events")
	}
	data, ret := l.set.Wait(uint32(timeout.Milliseconds()))
	switch ret {
	case nvml.SUCCESS:
	case nvml.ERROR_TIMEOUT:
		return nil, nil
	default:
		return nil, fmt.Errorf("nvmlEventSetWait returns %d", int(ret))
	}
	e := &Event{At: time.Now(), DoubleBit: data.EventType&nvml.EventTypeDoubleBitEccError != 0}
	if data.EventType&nvml.EventTypeXidCriticalError != 0 {
		e.Xid = int(data.EventData)
	}
	e.UUID, _ = data.Device.GetUUID()
	if info, ret := data.Device.GetPciInfo(); ret == nvml.SUCCESS {
		e.PCI = busID(info)
	}
	return e, nil
}

func (l *nvmlLibrary) close() {
	if l.set != nil {
		_ = l.set.Free()
		l.set = nil
	}
	_ = l.api.Shutdown()
}

// has says whether the library has a function. Calling one that it lacks would end
// the process: the symbols are bound when they are first called.
func (l *nvmlLibrary) has(symbol string) bool {
	return l.api.Extensions().LookupSymbol(symbol) == nil
}

func (l *nvmlLibrary) read() (gpustate.State, error) {
	s := gpustate.State{At: time.Now(), GPUs: []gpustate.GPU{}}
	s.Driver, _ = l.api.SystemGetDriverVersion()
	s.Library, _ = l.api.SystemGetNVMLVersion()
	count, ret := l.api.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return s, fmt.Errorf("nvmlDeviceGetCount returns %d", int(ret))
	}
	for i := range count {
		r := reader{l: l, g: gpustate.GPU{Index: i}}
		d, ret := l.api.DeviceGetHandleByIndex(i)
		if r.ok(ret) {
			r.device(d)
		} else if !r.g.Lost && !r.g.ResetRequired {
			// Neither here nor lost, for example a GPU of which we may know nothing.
			continue
		}
		s.GPUs = append(s.GPUs, r.g)
	}
	return s, nil
}

// busID is the canonical address of a PCI info.
func busID(info nvml.PciInfo) string {
	b := make([]byte, 0, len(info.BusId))
	for _, c := range info.BusId {
		if c == 0 {
			break
		}
		b = append(b, byte(c))
	}
	return nvidia.CanonicalPCI(string(b))
}
