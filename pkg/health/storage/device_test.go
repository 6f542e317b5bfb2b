package storage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/host"
)

func TestOnlyDevicesUnderTheNodesOwnFoldersAreNeeded(t *testing.T) {
	root := t.TempDir()
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	needed := Needed(h)
	if _, known := needed("nvme0n1p1"); known {
		t.Error("known without mounts to read")
	}
	if err := os.MkdirAll(filepath.Join(root, "proc/1"), 0o755); err != nil {
		t.Fatal(err)
	}
	const mountinfo = `22 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw
30 22 253:0 / /var/lib/containerd rw - ext4 /dev/mapper/vg-containerd rw
31 22 259:5 / /var/lib/kubelet/pods/u/volumes/kubernetes.io~csi/pvc-1/mount rw - xfs /dev/nvme2n1 rw
`
	if err := os.WriteFile(filepath.Join(root, "proc/1/mountinfo"), []byte(mountinfo), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "sys/dev/block"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../devices/virtual/block/dm-0", filepath.Join(root, "sys/dev/block/253:0")); err != nil {
		t.Fatal(err)
	}
	for device, want := range map[string]bool{"nvme0n1p1": true, "dm-0": true, "nvme2n1": false, "nvme9n9": false} {
		if got, known := needed(device); got != want || !known {
			t.Errorf("%s: needed %v, known %v; want %v", device, got, known, want)
		}
	}
}
