package collect

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// env is what the sources of a capture need to know. It does not change once the
// capture has begun.
type env struct {
	host  *host.Host
	node  string
	since time.Duration
	// live says that the root is that of the machine this process runs on, and not a
	// copy of files.
	live     bool
	platform platform
	kubelet  kubelet
	ctrd     containerd
	litter   *litter
}

// newEnv looks at the host: what it is, and where its kubelet and containerd have
// their files.
func newEnv(ctx context.Context, o *Options) *env {
	e := &env{host: o.Host, node: o.Node, since: o.Since, litter: &litter{host: o.Host}}
	e.live = isLive(o.Host)
	if e.node == "" {
		e.node, _ = o.Host.ReadString("/proc/sys/kernel/hostname")
	}
	if e.node == "" {
		e.node, _ = o.Host.ReadString("/etc/hostname")
	}
	e.platform = readPlatform(o.Host)
	procs := findProcesses(ctx, o.Host, "kubelet", "containerd")
	e.kubelet = readKubelet(o.Host, procs)
	e.ctrd = readContainerd(o.Host, procs, e.kubelet)
	return e
}

// isLive reports whether the root has a real /proc.
func isLive(h *host.Host) bool {
	if h.Root() == "/" {
		return true
	}
	f, err := h.Open("/proc")
	if err != nil {
		return false
	}
	defer f.Close()
	var st unix.Statfs_t
	return unix.Fstatfs(int(f.Fd()), &st) == nil && st.Type == unix.PROC_SUPER_MAGIC
}

// platform is what kind of node the host is.
type platform struct {
	osID                              string
	pretty                            string
	auto, hybrid, nvidia, neuron, ec2 bool
}

func readPlatform(h *host.Host) platform {
	var p platform
	text, err := h.ReadString("/etc/os-release")
	if err != nil {
		text, _ = h.ReadString("/usr/lib/os-release")
	}
	for line := range strings.SplitSeq(text, "\n") {
		key, value, _ := strings.Cut(line, "=")
		switch value = strings.Trim(strings.TrimSpace(value), `"'`); key {
		case "ID":
			p.osID = value
		case "PRETTY_NAME":
			p.pretty = value
		}
	}
	e := env{host: h}
	p.auto = e.unitFile("eks-healthchecker")
	p.hybrid = h.Exists("/opt/nodeadm/tracker")
	p.nvidia = h.Exists("/proc/driver/nvidia/version") || h.Exists("/sys/module/nvidia")
	p.neuron = h.Exists("/sys/module/neuron")
	vendor, _ := h.ReadString("/sys/class/dmi/id/sys_vendor")
	xen, _ := h.ReadString("/sys/hypervisor/uuid")
	p.ec2 = vendor == "Amazon EC2" || strings.HasPrefix(strings.ToLower(xen), "ec2")
	return p
}

// names lists what the host was recognised as, for the manifest.
func (p platform) names() []string {
	var out []string
	if p.osID != "" {
		out = append(out, p.osID)
	}
	for _, f := range []struct {
		name string
		is   bool
	}{{"auto-mode", p.auto}, {"ec2", p.ec2}, {"hybrid", p.hybrid}, {"neuron", p.neuron}, {"nvidia", p.nvidia}} {
		if f.is {
			out = append(out, f.name)
		}
	}
	return out
}

// The platforms that entries can be for.
var (
	onBottlerocket = condition{"Bottlerocket", func(e *env) bool { return e.platform.osID == "bottlerocket" }}
	onAutoMode     = condition{"EKS Auto Mode", func(e *env) bool { return e.platform.auto }}
	onNVIDIA       = condition{"nodes with the NVIDIA driver", func(e *env) bool { return e.platform.nvidia }}
	onNeuron       = condition{"nodes with the Neuron driver", func(e *env) bool { return e.platform.neuron }}
	onIPVS         = condition{"nodes with the ip_vs module loaded", func(e *env) bool { return e.host.Exists("/proc/net/ip_vs") }}
	onModules      = condition{"kernels with loadable modules", func(e *env) bool { return e.host.Exists("/proc/modules") }}
	onNVMe         = condition{"nodes with NVMe devices", func(e *env) bool { return e.host.Exists("/sys/class/nvme") }}
	onDeviceMapper = condition{"nodes with the device mapper", func(e *env) bool { return e.host.Exists("/sys/class/misc/device-mapper") }}
	onEC2          = condition{"EC2 instances", func(e *env) bool { return e.platform.ec2 }}
)

// hostFact reads a one-line file, empty when there is none.
func hostFact(h *host.Host, path string) string {
	s, _ := h.ReadString(path)
	return s
}
