package storage

import (
	"slices"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// Needed returns a function that says whether the node itself needs the filesystem
// on a block device, by the name that the kernel's log gives it (nvme0n1p1, dm-0):
// whether /, /var, /var/lib/kubelet or /var/lib/containerd lies on it. A pod's volume
// that fails is that pod's fault, and no reason to replace the node. known is false
// while the mounts cannot be read. The mounts are read at each call, since a log
// speaks of devices long after the agent has started; such lines are rare.
func Needed(h *host.Host) func(device string) (needed, known bool) {
	return func(device string) (needed, known bool) {
		mounts, err := readMounts(h)
		if err != nil || len(mounts) == 0 {
			return false, false
		}
		return slices.ContainsFunc(critical(mounts), func(m mount) bool { return subject(h, m) == device }), true
	}
}
