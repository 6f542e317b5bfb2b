package ekslogs

import (
	"archive/tar"
	"crypto/rand"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAFullDiskIsToldAndLosesNothing(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small tmpfs needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	noise := make([]byte, 1<<20)
	_, _ = rand.Read(noise)
	api := newFakeAPI(t)
	api.addNode("a", archive(t, []tar.Header{{Name: "x", Typeflag: tar.TypeReg}}, []string{string(noise)}))
	plugin(t, api, "a", "-d", dir).want(t, exitSomeFailed, "no space left on device", "--attach")
	if f := files(t, dir); f != "" {
		t.Errorf("folder: %s", f)
	}
	if api.object("a") == nil {
		t.Error("the bundle on the node was given away, though it is good")
	}
	got := plugin(t, api, "a", "--attach")
	got.want(t, exitOK)
}
