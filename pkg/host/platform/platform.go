// Package platform tells what kind of node a host is. All that depends on it asks here.
package platform

import (
	"path"
	"slices"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// Platform is what kind of node a host is.
type Platform struct {
	// OS is the ID of os-release(5): "amzn", "bottlerocket", "ubuntu".
	OS string
	// Auto says that it is a node of EKS Auto Mode, where the agents of the network are
	// services of the node.
	Auto bool
	// Hybrid says that it is an EKS hybrid node: a machine outside AWS.
	Hybrid bool
	// EC2 says that it is an EC2 instance.
	EC2 bool
	// NVIDIA and Neuron say that the driver of such devices is loaded.
	NVIDIA, Neuron bool
}

// Names lists what the host was recognised as.
func (p Platform) Names() []string {
	var out []string
	if p.OS != "" {
		out = append(out, p.OS)
	}
	for _, f := range []struct {
		name string
		is   bool
	}{{"auto-mode", p.Auto}, {"ec2", p.EC2}, {"hybrid", p.Hybrid}, {"neuron", p.Neuron}, {"nvidia", p.NVIDIA}} {
		if f.is {
			out = append(out, f.name)
		}
	}
	return out
}

// Read looks at the host.
func Read(h *host.Host) Platform {
	text, err := h.ReadString("/etc/os-release")
	if err != nil {
		text, _ = h.ReadString("/usr/lib/os-release")
	}
	var p Platform
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "ID="); ok {
			p.OS = strings.Trim(v, `"'`)
		}
	}
	p.Auto = HasUnit(h, "eks-healthchecker.service")
	p.Hybrid = h.Exists("/opt/nodeadm/tracker")
	vendor, _ := h.ReadString("/sys/class/dmi/id/sys_vendor")
	xen, _ := h.ReadString("/sys/hypervisor/uuid")
	p.EC2 = vendor == "Amazon EC2" || strings.HasPrefix(strings.ToLower(xen), "ec2")
	p.NVIDIA = h.Exists("/proc/driver/nvidia/version") || h.Exists("/sys/module/nvidia")
	p.Neuron = h.Exists("/sys/module/neuron")
	return p
}

// UnitDirs are the folders in which systemd looks for units, Bottlerocket's too.
func UnitDirs() []string {
	return []string{
		"/etc/systemd/system",
		"/run/systemd/system",
		"/usr/local/lib/systemd/system",
		"/usr/lib/systemd/system",
		"/lib/systemd/system",
		"/x86_64-bottlerocket-linux-gnu/sys-root/usr/lib/systemd/system",
		"/aarch64-bottlerocket-linux-gnu/sys-root/usr/lib/systemd/system",
	}
}

// HasUnit reports whether the host has a file for a systemd unit.
func HasUnit(h *host.Host, unit string) bool {
	return slices.ContainsFunc(UnitDirs(), func(dir string) bool { return h.Exists(dir + "/" + unit) })
}

// VPCCNI returns the folders of logs of the pods that run the Amazon VPC CNI on the
// node; none means that the node has another network. Its name is no sign of one: the
// node termination handler's begins with the same word.
func VPCCNI(h *host.Host) []string {
	dirs, err := h.Glob("/var/log/pods/*/aws-vpc-cni-init")
	if err != nil {
		return nil
	}
	for i, d := range dirs {
		dirs[i] = path.Dir(d)
	}
	return dirs
}
