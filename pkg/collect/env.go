package collect

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/platform"
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
	platform platform.Platform
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
	e.platform = platform.Read(o.Host)
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

// The platforms that entries can be for.
var (
	onBottlerocket = condition{"Bottlerocket", func(e *env) bool { return e.platform.OS == "bottlerocket" }}
	onAutoMode     = condition{"EKS Auto Mode", func(e *env) bool { return e.platform.Auto }}
	onNVIDIA       = condition{"nodes with the NVIDIA driver", func(e *env) bool { return e.platform.NVIDIA }}
	onNeuron       = condition{"nodes with the Neuron driver", func(e *env) bool { return e.platform.Neuron }}
	onIPVS         = condition{"nodes with the ip_vs module loaded", func(e *env) bool { return e.host.Exists("/proc/net/ip_vs") }}
	onModules      = condition{"kernels with loadable modules", func(e *env) bool { return e.host.Exists("/proc/modules") }}
	onNVMe         = condition{"nodes with NVMe devices", func(e *env) bool { return e.host.Exists("/sys/class/nvme") }}
	onDeviceMapper = condition{"nodes with the device mapper", func(e *env) bool { return e.host.Exists("/sys/class/misc/device-mapper") }}
	onEC2          = condition{"EC2 instances", func(e *env) bool { return e.platform.EC2 }}
)

// hostFact reads a one-line file, empty when there is none.
func hostFact(h *host.Host, path string) string {
	s, _ := h.ReadString(path)
	return s
}
