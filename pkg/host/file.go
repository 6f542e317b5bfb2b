package host

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Open opens a file of the host for reading, as the host would resolve it: an
// absolute symbolic link starts again at the host's root, and none leads out of
// it (openat2(2), RESOLVE_IN_ROOT). It never blocks on a FIFO. On kernels before
// 5.6, which lack openat2, links that leave the root are refused instead.
func (h *Host) Open(path string) (*os.File, error) {
	return h.open(path, 0)
}

// OpenNoFollow is Open for folders that pods can write to: it refuses a symbolic
// link anywhere in path, with an error that is unix.ELOOP.
func (h *Host) OpenNoFollow(path string) (*os.File, error) {
	return h.open(path, unix.RESOLVE_NO_SYMLINKS)
}

func (h *Host) open(path string, resolve uint64) (*os.File, error) {
	dir, err := os.Open(h.root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	const flags = unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	how := &unix.OpenHow{Flags: flags, Resolve: resolve | unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	var fd int
	for {
		fd, err = unix.Openat2(int(dir.Fd()), rel(path), how)
		// EAGAIN: the kernel could not prove that a ".." stayed inside while
		// something was renamed; openat2(2) says to try again.
		if err != unix.EINTR && err != unix.EAGAIN {
			break
		}
	}
	if err == unix.ENOSYS {
		root, err := os.OpenRoot(h.root)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.OpenFile(rel(path), flags, 0)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// ReadFile reads a whole file of the host, at most limit bytes of it (0: 16 MiB).
// It is meant for small files of /proc, /sys and /etc.
func (h *Host) ReadFile(path string, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = 16 << 20
	}
	f, err := h.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// ReadString reads a one-value file, such as those of /proc/sys, without the
// white space around the value.
func (h *Host) ReadString(path string) (string, error) {
	b, err := h.ReadFile(path, 64<<10)
	return strings.TrimSpace(string(b)), err
}

// Exists reports whether the host has path. An unreadable path counts as absent.
func (h *Host) Exists(path string) bool {
	f, err := h.Open(path)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// ReadDir lists a directory of the host, sorted by name.
func (h *Host) ReadDir(path string) ([]fs.DirEntry, error) {
	f, err := h.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	sortByName(entries)
	return entries, nil
}

// Glob returns the host paths that match pattern, sorted, as filepath.Glob does.
// The names may be symbolic links: open them with Open or OpenNoFollow.
func (h *Host) Glob(pattern string) ([]string, error) {
	names, err := filepath.Glob(h.Path(pattern))
	if err != nil {
		return nil, err
	}
	for i := range names {
		names[i] = h.HostPath(names[i])
	}
	return names, nil
}
