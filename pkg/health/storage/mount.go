package storage

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// mount is one line of mountinfo (proc_pid_mountinfo(5)).
type mount struct {
	id, device string // mount id, and major:minor of the superblock
	point      string // where it is mounted, on the host
	fs, source string
	// options are those of this mount, super those of the filesystem, which all its
	// mounts share.
	options, super []string
}

// readMounts returns the mounts of the host: of this process when it runs on the host
// itself, else of the host's first process.
func readMounts(h *host.Host) ([]mount, error) {
	file := "/proc/1/mountinfo"
	if h.Root() == "/" {
		file = "/proc/self/mountinfo"
	}
	var b []byte
	var err error
	if h.Root() == "/" {
		b, err = os.ReadFile(file) // "self" is a link that Open does not follow
	} else {
		b, err = h.ReadFile(file, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	return parseMounts(string(b)), nil
}

// parseMounts leaves out lines that it does not understand.
func parseMounts(s string) []mount {
	var out []mount
	for line := range strings.Lines(s) {
		left, right, ok := strings.Cut(strings.TrimRight(line, "\n"), " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 6 || len(r) < 2 {
			continue
		}
		m := mount{id: l[0], device: l[2], point: unescape(l[4]), fs: r[0], source: unescape(r[1]), options: strings.Split(l[5], ",")}
		if len(r) > 2 {
			m.super = strings.Split(r[2], ",")
		}
		out = append(out, m)
	}
	return out
}

// unescape undoes the kernel's escapes of white space and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`).Replace(s)
}

// at returns the mount that path lies on: of those with the longest mount point the
// last, which hides the others.
func at(mounts []mount, p string) (mount, bool) {
	var best mount
	found := false
	for _, m := range mounts {
		if within(p, m.point) && (!found || len(m.point) >= len(best.point)) {
			best, found = m, true
		}
	}
	return best, found
}

func within(p, dir string) bool {
	return dir == "/" || p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// criticalPaths are the folders without which a node does not work.
func criticalPaths() []string {
	return []string{"/", "/var", "/var/lib/kubelet", "/var/lib/containerd"}
}

// critical returns the mounts that hold the critical folders, each once.
func critical(mounts []mount) []mount {
	var out []mount
	for _, p := range criticalPaths() {
		m, ok := at(mounts, p)
		if ok && !slices.ContainsFunc(out, func(o mount) bool { return o.device == m.device }) {
			out = append(out, m)
		}
	}
	return out
}

// subject names what a fault of the filesystem is about: the block device as the
// kernel's log names it, else the place.
func subject(h *host.Host, m mount) string {
	if link, err := os.Readlink(h.Path("/sys/dev/block/" + m.device)); err == nil {
		return path.Base(link)
	}
	if strings.HasPrefix(m.source, "/dev/") {
		return path.Base(m.source)
	}
	return m.point
}
