package nvmlhelper

import (
	"slices"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// libraryDirs are where distributions, the GPU Operator's driver container and the
// operating systems made for containers keep libnvidia-ml.so.1.
var libraryDirs = []string{
	"/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib",
	"/x86_64-bottlerocket-linux-gnu/sys-root/usr/lib/nvidia/tesla", "/aarch64-bottlerocket-linux-gnu/sys-root/usr/lib/nvidia/tesla",
	"/run/nvidia/driver/usr/lib64", "/run/nvidia/driver/usr/lib/x86_64-linux-gnu", "/run/nvidia/driver/usr/lib/aarch64-linux-gnu",
	"/home/kubernetes/bin/nvidia/lib64", "/opt/nvidia/lib64",
}

// FindLibrary returns the path, for this process, of the host's libnvidia-ml.so.1. It
// is empty when the dynamic linker is to find it: on the host itself, and in a
// container into which the NVIDIA runtime has put it.
func FindLibrary(h *host.Host) string {
	const name = "libnvidia-ml.so.1"
	if h.Root() == "/" {
		return ""
	}
	i := slices.IndexFunc(libraryDirs, func(dir string) bool { return h.Exists(dir + "/" + name) })
	if i < 0 {
		return ""
	}
	return h.Path(libraryDirs[i] + "/" + name)
}
