// Package platform tells what kind of node a host is. All that depends on it asks here.
package platform

import (
	"path"
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
	return p
}

// HasUnit reports whether the host has a file for a systemd unit.
func HasUnit(h *host.Host, unit string) bool {
	for _, dir := range []string{"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system", "/x86_64-bottlerocket-linux-gnu/sys-root/usr/lib/systemd/system", "/aarch64-bottlerocket-linux-gnu/sys-root/usr/lib/systemd/system"} {
		if h.Exists(dir + "/" + unit) {
			return true
		}
	}
	return false
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
