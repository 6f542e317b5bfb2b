package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// hungMounts bounds how many filesystems are asked.
const hungMounts = 256

// hung finds mounts whose server or driver does not answer: whoever touches one waits
// for ever. A process of its own asks, see asker. Local filesystems are left out: they
// answer out of memory.
type hung struct {
	check.Info
	opts  Options
	asker asker
}

func newHung(o Options) *hung {
	return &hung{
		Info: info("hung-mounts", 5*time.Minute, "MountHung"), opts: o,
		asker: asker{command: o.Asker, timeout: askTime},
	}
}

// Run implements check.Check.
func (c *hung) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	mounts, err := readMounts(h)
	if err != nil {
		return nil, err
	}
	byPath, paths := map[string]mount{}, []string(nil)
	for _, m := range canHang(mounts) {
		p := h.Path(m.point)
		byPath[p] = m
		paths = append(paths, p)
	}
	if len(paths) == 0 {
		return nil, nil
	}
	silent, err := c.asker.ask(ctx, paths)
	if err != nil {
		return nil, err
	}
	var bad []mount
	for _, p := range silent {
		bad = append(bad, byPath[p])
	}
	return hungFindings(c.opts, bad), nil
}

// local reports whether the filesystem answers by itself: on a local disk, or in
// memory.
func (m mount) local() bool {
	switch m.fs {
	case "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "vfat", "tmpfs", "ramfs", "overlay":
		return true
	}
	return false
}

// canHang returns the mounts behind which there is a server or a program, one for each
// filesystem.
func canHang(mounts []mount) []mount {
	var out []mount
	seen := map[string]bool{}
	for _, m := range mounts {
		kind, _, _ := strings.Cut(m.fs, ".")
		switch kind {
		case "nfs", "nfs4", "cifs", "smb3", "fuse", "fuseblk", "lustre", "ceph", "9p", "afs", "glusterfs", "gpfs", "beegfs", "virtiofs":
		default:
			continue
		}
		if !seen[m.device] && len(out) < hungMounts {
			seen[m.device] = true
			out = append(out, m)
		}
	}
	return out
}

// hungFindings makes one finding for each source, such as a server's export: what is
// mounted from it in many pods fails at once.
func hungFindings(o Options, bad []mount) []health.Finding {
	var out []health.Finding
	index := map[string]int{}
	for _, m := range bad {
		if i, ok := index[m.source]; ok {
			out[i].Evidence += ", " + m.point
			continue
		}
		index[m.source] = len(out)
		f := check.Finding(o.Catalog, "MountHung", m.source, fmt.Sprintf("The %s mount of %s does not answer; whatever touches it waits.", m.fs, m.source))
		f.Evidence = fmt.Sprintf("no answer to statfs within %s: %s", askTime, m.point)
		f.Fields = map[string]any{"mount": m.point, "fs": m.fs, "source": m.source, "volume": within(m.point, "/var/lib/kubelet")}
		out = append(out, f)
	}
	return out
}
