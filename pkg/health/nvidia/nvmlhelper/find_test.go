package nvmlhelper

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/host"
)

func TestTheLibraryIsTheHosts(t *testing.T) {
	root := t.TempDir()
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	if got := FindLibrary(h); got != "" {
		t.Errorf("found %q on a host without it", got)
	}
	dir := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "libnvidia-ml.so.1")
	if err := os.WriteFile(want, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := FindLibrary(h); got != want {
		t.Errorf("found %q, want %q", got, want)
	}
	self, err := host.New("/")
	if err != nil {
		t.Fatal(err)
	}
	if got := FindLibrary(self); got != "" {
		t.Errorf("on the host itself: %q, want the dynamic linker's", got)
	}
}
