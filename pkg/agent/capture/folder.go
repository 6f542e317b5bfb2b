package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// SupportDir is the folder on the host whose files the kubelet serves under
// /logs/support/.
const SupportDir = "/var/log/support"

// BundleName is the file name of a node's bundle.
func BundleName(node string) string { return node + "-logs.tar.gz" }

// checksumSuffix makes the name of the file that holds a bundle's SHA-256.
const checksumSuffix = ".sha256"

// uploadsDir is the folder, in the agent's state, for bundles on their way to a URL.
const uploadsDir = "uploads"

// openFolder opens a private folder of the host. When it is missing it is made, with
// mode 0700, if create is set, and the error is fs.ErrNotExist otherwise. Pods can write to /var/log by way of a hostPath volume, so that the last
// element of dir must be a folder of our own user and never a symbolic link; the
// folder is held by its descriptor, and nobody can slip another one under us.
func openFolder(h *host.Host, dir string, create bool) (*os.Root, error) {
	parent, err := openParent(h, path.Dir(dir), create)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	name := path.Base(dir)
	if create {
		if err := parent.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("make %s on the host: %w", dir, err)
		}
	}
	want, err := parent.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("%s on the host: %w", dir, err)
	}
	if !want.IsDir() {
		return nil, fmt.Errorf("%s on the host is not a folder (%s): remove it, something has planted it there", dir, want.Mode().Type())
	}
	if stat, ok := want.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s on the host belongs to user %d: remove it, something has planted it there", dir, stat.Uid)
	}
	root, err := parent.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("%s on the host: %w", dir, err)
	}
	got, err := root.Stat(".")
	if err == nil && !os.SameFile(want, got) {
		err = errors.New("was replaced while it was opened")
	}
	if err == nil && got.Mode().Perm() != 0o700 {
		err = root.Chmod(".", 0o700)
	}
	if err != nil {
		root.Close()
		return nil, fmt.Errorf("%s on the host: %w", dir, err)
	}
	return root, nil
}

// openParent opens a folder that only root can change, as the host would resolve
// its name, and makes it when it is missing.
func openParent(h *host.Host, dir string, create bool) (*os.Root, error) {
	f, err := h.Open(dir)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err := makeAll(h, dir); err != nil {
			return nil, err
		}
		f, err = h.Open(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s on the host: %w", dir, err)
	}
	defer f.Close()
	return os.OpenRoot(fdPath(f))
}

func makeAll(h *host.Host, dir string) error {
	root, err := os.OpenRoot(h.Root())
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.MkdirAll(strings.TrimPrefix(path.Clean(dir), "/"), 0o755); err != nil {
		return fmt.Errorf("make %s on the host: %w", dir, err)
	}
	return nil
}

// fdPath names an open file by its descriptor.
func fdPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// realPath returns the name of an open folder, free of symbolic links.
func realPath(dir *os.Root) (string, error) {
	f, err := dir.Open(".")
	if err != nil {
		return "", err
	}
	defer f.Close()
	return os.Readlink(fdPath(f))
}
