package gpustate

import (
	_ "embed"
	"path"
	"strconv"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
)

//go:embed instances.tsv
var instancesTSV string

// InstanceGPUs returns how many GPUs an EC2 instance type has, 0 when it is not in
// the embedded table (EC2's instance type pages; types with a share of a GPU are
// left out).
func InstanceGPUs(instanceType string) int {
	for line := range strings.SplitSeq(instancesTSV, "\n") {
		name, count, ok := strings.Cut(line, "\t")
		if ok && name == instanceType {
			n, err := strconv.Atoi(count)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}

// InstanceType returns the EC2 instance type of the machine, empty elsewhere. Nitro
// firmware gives it as the product's name.
func InstanceType(h *host.Host) string {
	const dmi = "/sys/devices/virtual/dmi/id/"
	if vendor, err := h.ReadString(dmi + "sys_vendor"); err != nil || vendor != "Amazon EC2" {
		return ""
	}
	name, err := h.ReadString(dmi + "product_name")
	if err != nil {
		return ""
	}
	return name
}

// PCIDevice is an NVIDIA GPU on the PCI bus.
type PCIDevice struct {
	// Address is as sysfs has it, "0000:3b:00.0".
	Address string
	// Driver is the kernel driver that it is bound to, empty when none is.
	Driver string
}

const (
	vendorNVIDIA = "0x10de"
	// classDisplay begins the class of display controllers: VGA (0x0300) and 3D
	// (0x0302), which is what GPUs without a monitor are.
	classDisplay = "0x03"
	// vfio is the driver that hands a device to a virtual machine.
	vfio = "vfio-pci"
)

// PCIDevices lists the NVIDIA GPUs of the host.
func PCIDevices(h *host.Host) ([]PCIDevice, error) {
	const bus = "/sys/bus/pci/devices"
	entries, err := h.ReadDir(bus)
	if err != nil {
		return nil, err
	}
	var out []PCIDevice
	for _, e := range entries {
		dir := path.Join(bus, e.Name())
		vendor, err := h.ReadString(path.Join(dir, "vendor"))
		if err != nil || vendor != vendorNVIDIA {
			continue
		}
		class, err := h.ReadString(path.Join(dir, "class"))
		if err != nil || !strings.HasPrefix(class, classDisplay) {
			continue
		}
		d := PCIDevice{Address: e.Name()}
		if uevent, err := h.ReadString(path.Join(dir, "uevent")); err == nil {
			for line := range strings.SplitSeq(uevent, "\n") {
				if driver, ok := strings.CutPrefix(line, "DRIVER="); ok {
					d.Driver = driver
				}
			}
		}
		out = append(out, d)
	}
	return out, nil
}

// Expect says how many GPUs there should be on the host. configured overrides the
// table of instance types; a negative one turns the comparison with it off.
func Expect(h *host.Host, configured int) (Expected, error) {
	devices, err := PCIDevices(h)
	if err != nil {
		return Expected{}, err
	}
	var want Expected
	for _, d := range devices {
		if d.Driver != vfio {
			want.PCI++
		}
	}
	switch {
	case configured > 0:
		want.Configured = configured
	case configured < 0, want.PCI < len(devices):
		// A GPU that was handed to a virtual machine is missing on purpose.
	default:
		want.TypeName = InstanceType(h)
		want.InstanceType = InstanceGPUs(want.TypeName)
	}
	return want, nil
}
