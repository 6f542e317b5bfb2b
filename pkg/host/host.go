// Package host is the only door to the machine that we watch. Everything that
// reads a file of the host or runs a program of the host goes through a Host, so
// that the same code works on the machine itself, in a container that has the
// host's root at /host, and over a fixture tree in a test.
package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Host is a machine, seen through the folder at which its root directory lies.
// It is immutable and safe for concurrent use.
type Host struct {
	root string
}

// New returns the host whose root directory is root: "/" for the machine itself,
// "/host" for a container with the host's root mounted there, or a fixture tree.
func New(root string) (*Host, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("host root %q: %w", root, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("host root: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("host root %s is not a directory", abs)
	}
	return &Host{root: abs}, nil
}

// Root is the absolute path of the folder that holds the host's root directory.
func (h *Host) Root() string { return h.root }

// Path returns where path, absolute on the host, lies for this process. It does
// not resolve symbolic links: those of the host may point out of the root. Open
// is for reading what the host controls.
func (h *Host) Path(path string) string {
	return filepath.Join(h.root, path)
}

// HostPath is the inverse of Path: the name by which the host knows a path of
// this process. A path outside the root is returned as it is.
func (h *Host) HostPath(path string) string {
	if h.root == "/" {
		return path
	}
	rest, ok := strings.CutPrefix(path, h.root)
	if !ok || (rest != "" && rest[0] != '/') {
		return path
	}
	if rest == "" {
		return "/"
	}
	return rest
}

// rel makes an absolute host path relative to the root, as os.Root wants it.
func rel(path string) string {
	p := strings.TrimPrefix(filepath.Clean("/"+path), "/")
	if p == "" {
		return "."
	}
	return p
}
