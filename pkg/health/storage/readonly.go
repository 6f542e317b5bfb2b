package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// readOnlyKey is where the check remembers which mounts became read-only.
const readOnlyKey = "check/read-only"

// readOnly finds filesystems that could be written to and cannot any more. The kernel
// makes a filesystem read-only after an error in it.
type readOnly struct {
	check.Info
	opts  Options
	state mountStates
}

// mountStates are the mounts by key; the value says whether the mount was seen
// writable, or is otherwise known to have to be.
type mountStates map[string]bool

func (m mount) key() string { return m.id + " " + m.device + " " + m.point }

func newReadOnly(o Options) *readOnly {
	return &readOnly{Info: info("read-only", time.Minute, "FilesystemReadOnly"), opts: o}
}

// Run implements check.Check.
func (c *readOnly) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	mounts, err := readMounts(h)
	if err != nil {
		return nil, err
	}
	if c.state == nil {
		c.state = c.recall(h)
	}
	fstab, _ := h.ReadFile("/etc/fstab", 1<<20)
	var bad []mount
	c.state, bad = checkReadOnly(c.state, mounts, slices.Concat(c.opts.EssentialMounts, writable(string(fstab))))
	c.remember(h, bad)
	crit := critical(mounts)
	return readOnlyFindings(c.opts, bad, func(m mount) bool {
		return slices.ContainsFunc(crit, func(o mount) bool { return o.device == m.device })
	}, func(m mount) string { return subject(h, m) }), nil
}

// recall reads what an earlier process of this boot found, which must not look as if
// it had always been so.
func (c *readOnly) recall(h *host.Host) mountStates {
	state := mountStates{}
	boot, err := h.BootID()
	if c.opts.Memory == nil || err != nil {
		return state
	}
	lines := strings.Split(c.opts.Memory.Get(readOnlyKey), "\n")
	if lines[0] != boot {
		return state
	}
	for _, key := range lines[1:] {
		state[key] = true
	}
	return state
}

func (c *readOnly) remember(h *host.Host, bad []mount) {
	boot, err := h.BootID()
	if c.opts.Memory == nil || err != nil {
		return
	}
	text := boot
	for _, m := range bad {
		text += "\n" + m.key()
	}
	if len(bad) > 0 || c.opts.Memory.Get(readOnlyKey) != "" {
		c.opts.Memory.Set(readOnlyKey, text)
	}
}

// writable returns the mount points that fstab(5) wants writable.
func writable(fstab string) []string {
	var out []string
	for line := range strings.Lines(fstab) {
		f := strings.Fields(line)
		if len(f) >= 4 && f[0][0] != '#' && !slices.Contains(strings.Split(f[3], ","), "ro") {
			out = append(out, unescape(f[1]))
		}
	}
	return out
}

// checkReadOnly returns the mounts that are read-only and should not be: that were
// seen writable, that must be, or that the kernel itself made so.
func checkReadOnly(before mountStates, mounts []mount, must []string) (mountStates, []mount) {
	now, bad := mountStates{}, []mount(nil)
	must = append([]string{"/var", "/var/lib/kubelet", "/var/lib/containerd"}, must...)
	for _, m := range mounts {
		key := m.key()
		switch {
		case m.image():
		case !m.isReadOnly():
			now[key] = true
		case before[key] || m.forced() || slices.Contains(must, m.point):
			now[key] = true
			bad = append(bad, m)
		}
	}
	return now, bad
}

// image reports whether the filesystem cannot be written to by its kind.
func (m mount) image() bool {
	switch m.fs {
	case "squashfs", "erofs", "iso9660", "cramfs", "romfs", "udf":
		return true
	}
	return false
}

func (m mount) isReadOnly() bool {
	return slices.Contains(m.options, "ro") || slices.Contains(m.super, "ro") || m.stopped()
}

// stopped reports whether the kernel has shut the filesystem down: ext4 and XFS say so
// in its options on newer kernels.
func (m mount) stopped() bool {
	return slices.Contains(m.super, "emergency_ro") || slices.Contains(m.super, "shutdown")
}

// forced reports whether the kernel made it read-only. Whoever mounts or remounts it so
// makes both the mount and the filesystem read-only (path_mount in fs/namespace.c), the
// kernel after an error only the filesystem.
func (m mount) forced() bool {
	switch m.fs {
	case "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs":
		return m.stopped() || slices.Contains(m.super, "ro") && !slices.Contains(m.options, "ro")
	}
	return false
}

// readOnlyFindings makes one finding for each filesystem, not for each of its mounts.
func readOnlyFindings(o Options, bad []mount, isCritical func(mount) bool, name func(mount) string) []health.Finding {
	var out []health.Finding
	seen := map[string]bool{}
	for _, m := range bad {
		subject := name(m)
		if seen[subject] {
			continue
		}
		seen[subject] = true
		f := check.Finding(o.Catalog, "FilesystemReadOnly", subject, fmt.Sprintf("The filesystem at %s (%s) became read-only.", m.point, m.source))
		if !isCritical(m) {
			f.Severity = health.Warning
		}
		f.Evidence = fmt.Sprintf("%s on %s type %s: mount %s, filesystem %s", m.source, m.point, m.fs, strings.Join(m.options, ","), strings.Join(m.super, ","))
		f.Fields = map[string]any{"mount": m.point, "fs": m.fs, "device": m.source}
		out = append(out, f)
	}
	return out
}
