package bundlefs

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestOpenReadsFilesOfABundle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.tar.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	zw := gzip.NewWriter(f)
	tw := tar.NewWriter(zw)
	err = tw.WriteHeader(&tar.Header{Name: "system/a.txt", Mode: 0o600, Size: 5, Typeflag: tar.TypeReg})
	_, werr := tw.Write([]byte("hello"))
	if err := errors.Join(err, werr, tw.Close(), zw.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	fsys, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := fs.ReadFile(fsys, "system/a.txt"); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	if names, err := fs.Glob(fsys, "system/*"); err != nil || len(names) != 1 {
		t.Errorf("%q, %v", names, err)
	}
	if _, err := fs.ReadFile(fsys, "nope"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent file: %v", err)
	}
}

func TestOpenRefusesFoldersAndWhatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none.tar.gz")} {
		if _, err := Open(t.Context(), path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}
