package monitor

import (
	"path"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// hasNvidia reports whether the node has NVIDIA GPUs or their driver: a monitor with
// no hardware to watch writes no condition. It goes by the hardware itself, since
// labels of other products may be absent.
func hasNvidia(h *host.Host) bool {
	return h.Exists("/proc/driver/nvidia/version") || hasPCI(h, "0x10de", "0x03")
}

// hasNeuron reports whether the node has AWS Neuron devices.
func hasNeuron(h *host.Host) bool {
	if h.Exists("/sys/module/neuron") {
		return true
	}
	devices, err := h.ReadDir("/sys/class/neuron_device")
	return err == nil && len(devices) > 0
}

// hasPCI reports whether there is a PCI device of the vendor whose class begins so.
func hasPCI(h *host.Host, vendor, class string) bool {
	const devices = "/sys/bus/pci/devices"
	entries, err := h.ReadDir(devices)
	if err != nil {
		return false
	}
	for _, e := range entries {
		v, err := h.ReadString(path.Join(devices, e.Name(), "vendor"))
		if err != nil || v != vendor {
			continue
		}
		c, err := h.ReadString(path.Join(devices, e.Name(), "class"))
		if err == nil && len(c) >= len(class) && c[:len(class)] == class {
			return true
		}
	}
	return false
}
