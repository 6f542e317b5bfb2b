package storage

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
)

const (
	rootLine = "26 1 259:1 / / rw,relatime shared:1 - xfs /dev/nvme0n1p1 rw,attr2\n"
	dataLine = "40 26 259:3 / /data rw - ext4 /dev/nvme1n1 rw\n"
)

func mountinfo(lines ...string) map[string]string {
	text := ""
	for _, l := range lines {
		text += l
	}
	return map[string]string{"proc/1/mountinfo": text, "proc/sys/kernel/random/boot_id": "5f5c4d9e-0000-4000-8000-000000000001\n"}
}

func TestParseMounts(t *testing.T) {
	got := parseMounts("not a line\n" + `36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 - ext3 /dev/root ro,errors=continue` + "\n")
	want := []mount{{id: "36", device: "98:0", point: "/mnt 2", fs: "ext3", source: "/dev/root", options: []string{"rw", "noatime"}, super: []string{"ro", "errors=continue"}}}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(mount{})); d != "" {
		t.Error(d)
	}
}

func TestReadOnly(t *testing.T) {
	fatal, warning := told{"FilesystemReadOnly", health.Fatal, "nvme0n1p1"}, told{"FilesystemReadOnly", health.Warning, "nvme1n1"}
	for name, tc := range map[string]struct {
		before, after map[string]string
		want          []told
	}{
		"all can be written": {mountinfo(rootLine, dataLine), mountinfo(rootLine, dataLine), nil},
		"the root was remounted": {mountinfo(rootLine), mountinfo("26 1 259:1 / / ro,relatime - xfs /dev/nvme0n1p1 ro\n"),
			[]told{fatal}},
		"another filesystem was remounted": {mountinfo(rootLine, dataLine), mountinfo(rootLine, "40 26 259:3 / /data ro - ext4 /dev/nvme1n1 ro\n"),
			[]told{warning}},
		"one finding for all mounts of a filesystem": {
			mountinfo(rootLine, dataLine, "41 26 259:3 /a /a rw - ext4 /dev/nvme1n1 rw\n"),
			mountinfo(rootLine, "40 26 259:3 / /data rw - ext4 /dev/nvme1n1 ro\n41 26 259:3 /a /a rw - ext4 /dev/nvme1n1 ro\n"),
			[]told{warning}},
		"read-only from the start": {mountinfo(rootLine, "40 26 259:3 / /data ro - ext4 /dev/nvme1n1 ro\n"), mountinfo(rootLine, "40 26 259:3 / /data ro - ext4 /dev/nvme1n1 ro\n"),
			nil},
		"a root that is read-only by design": {mountinfo("26 1 253:0 / / ro - ext4 /dev/dm-0 ro\n"), mountinfo("26 1 253:0 / / ro - ext4 /dev/dm-0 ro\n"),
			nil},
		"an image": {mountinfo(rootLine), mountinfo(rootLine, "50 26 7:0 / /snap/core rw - squashfs /dev/loop0 ro\n"), nil},
		"the kernel did it before the first sample": {nil, mountinfo("26 1 259:1 / / rw - ext4 /dev/nvme0n1p1 ro,errors=remount-ro\n"),
			[]told{fatal}},
		"newer kernels have a word for it": {nil, mountinfo(rootLine, "40 26 259:3 / /data rw - ext4 /dev/nvme1n1 rw,emergency_ro\n"),
			[]told{warning}},
		"kubelet's own filesystem cannot be so by design": {nil, mountinfo(rootLine, "40 26 259:3 / /var/lib/kubelet ro - xfs /dev/nvme1n1 ro\n"),
			[]told{{"FilesystemReadOnly", health.Fatal, "nvme1n1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := checktest.Tree(t, tc.after)
			c := newReadOnly(options(h))
			if tc.before != nil {
				wantFindings(t, checktest.Run(t, c, checktest.Tree(t, tc.before)))
			}
			wantFindings(t, checktest.Run(t, c, h), tc.want...)
			wantFindings(t, checktest.Run(t, c, h), tc.want...)
		})
	}
}

func TestReadOnlyGoesByFstabAndByTheConfig(t *testing.T) {
	files := mountinfo(rootLine, "40 26 259:3 / /data ro - ext4 /dev/nvme1n1 ro\n", "41 26 0:50 / /scratch ro - tmpfs tmpfs ro\n")
	files["etc/fstab"] = "# <file system> <mount point> <type> <options>\n/dev/nvme1n1 /data ext4 defaults,nofail 0 2\n/dev/nvme2n1 /scratch ext4 ro 0 2\n"
	h := checktest.Tree(t, files)
	o := options(h)
	wantFindings(t, checktest.Run(t, newReadOnly(o), h), told{"FilesystemReadOnly", health.Warning, "nvme1n1"})
	o.EssentialMounts = []string{"/scratch"}
	wantFindings(t, checktest.Run(t, newReadOnly(o), h), told{"FilesystemReadOnly", health.Warning, "nvme1n1"}, told{"FilesystemReadOnly", health.Warning, "/scratch"})
}

func TestReadOnlyOutlivesARestartAndNotABoot(t *testing.T) {
	h := checktest.Tree(t, mountinfo(rootLine))
	o := options(h)
	c := newReadOnly(o)
	checktest.Run(t, c, h)
	bad := mountinfo("26 1 259:1 / / ro - xfs /dev/nvme0n1p1 ro\n")
	wantFindings(t, checktest.Run(t, c, checktest.Tree(t, bad)), told{"FilesystemReadOnly", health.Fatal, "nvme0n1p1"})
	wantFindings(t, checktest.Run(t, newReadOnly(o), checktest.Tree(t, bad)), told{"FilesystemReadOnly", health.Fatal, "nvme0n1p1"})
	bad["proc/sys/kernel/random/boot_id"] = "5f5c4d9e-0000-4000-8000-000000000002\n"
	wantFindings(t, checktest.Run(t, newReadOnly(o), checktest.Tree(t, bad)))
}

func TestTheSubjectIsTheKernelsNameOfTheDevice(t *testing.T) {
	h := checktest.Tree(t, mountinfo("26 1 253:0 / / rw - ext4 /dev/mapper/vg-root ro\n"))
	dir := filepath.Join(h.Root(), "sys/dev/block")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../devices/virtual/block/dm-0", dir+"/253:0"); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, checktest.Run(t, newReadOnly(options(h)), h), told{"FilesystemReadOnly", health.Fatal, "dm-0"})
}
