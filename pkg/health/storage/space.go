package storage

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// From which shares of free space on there is enough.
const (
	enoughBytes  = 0.10
	enoughInodes = 0.05
)

// space finds filesystems of the node itself that run full.
type space struct {
	check.Info
	opts Options
	// size asks one filesystem.
	size func(path string) (usage, error)
	// pending is the answer that an earlier run did not wait for any more.
	pending chan answered
}

// usage is what a filesystem says of its size (statfs(2)).
type usage struct {
	Bytes, Free, Available uint64 // Available is Free less what only root may use
	Inodes, FreeInodes     uint64 // 0 inodes: the filesystem makes them as needed
}

// answered are the answers of filesystems, by mount point.
type answered map[string]usage

func newSpace(o Options) *space {
	return &space{
		Info: info("disk-space", time.Minute, "DiskSpaceLow", "InodesExhausted", "FilesystemCorruption"),
		opts: o, size: statfs,
	}
}

// Run implements check.Check. Local filesystems answer out of memory. The one that does
// not costs a thread, once; those that are not local are left to the check of hung
// mounts.
func (c *space) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	mounts, err := readMounts(h)
	if err != nil {
		return nil, err
	}
	watched := critical(mounts)
	for _, p := range c.opts.EssentialMounts {
		if m, ok := at(mounts, p); ok && m.point == p {
			watched = append(watched, m)
		}
	}
	watched = slices.DeleteFunc(watched, func(m mount) bool { return !m.local() || m.image() })
	if c.pending == nil {
		c.pending = make(chan answered, 1)
		go func(to chan answered) { to <- c.ask(h, watched) }(c.pending)
	}
	select {
	case got := <-c.pending:
		c.pending = nil
		return checkSpace(c.opts, watched, got), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("a filesystem of the node does not tell its size: %w", ctx.Err())
	}
}

func (c *space) ask(h *host.Host, mounts []mount) answered {
	got := answered{}
	for _, m := range mounts {
		if u, err := c.size(h.Path(m.point)); err == nil {
			got[m.point] = u
		}
	}
	return got
}

func statfs(path string) (usage, error) {
	var s unix.Statfs_t
	for {
		err := unix.Statfs(path, &s)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return usage{}, fmt.Errorf("statfs %s: %w", path, err)
		}
		break
	}
	size := uint64(s.Bsize)
	if s.Frsize > 0 {
		size = uint64(s.Frsize)
	}
	return usage{Bytes: s.Blocks * size, Free: s.Bfree * size, Available: s.Bavail * size, Inodes: s.Files, FreeInodes: s.Ffree}, nil
}

// checkSpace judges as df(1) does: of what may be used, how much is left.
func checkSpace(o Options, mounts []mount, got answered) []health.Finding {
	var out []health.Finding
	add := func(m mount, reason, message, evidence string) {
		f := check.Finding(o.Catalog, reason, m.point, message)
		f.Evidence = m.source + " on " + m.point + ": " + evidence
		f.Fields = map[string]any{"mount": m.point, "fs": m.fs, "device": m.source}
		out = append(out, f)
	}
	for _, m := range mounts {
		u, ok := got[m.point]
		switch {
		case !ok || u.Bytes == 0: // of no size
			continue
		case u.Free > u.Bytes:
			add(m, "FilesystemCorruption", fmt.Sprintf("The filesystem at %s counts more free space than it has.", m.point),
				fmt.Sprintf("%d of %d bytes free", u.Free, u.Bytes))
			continue
		}
		usable := u.Bytes - u.Free + u.Available
		if float64(u.Available) < enoughBytes*float64(usable) {
			add(m, "DiskSpaceLow", fmt.Sprintf("The filesystem at %s has less than %.0f%% of its space left.", m.point, 100*enoughBytes),
				fmt.Sprintf("%d of %d bytes available", u.Available, usable))
		}
		if u.Inodes > 0 && float64(u.FreeInodes) < enoughInodes*float64(u.Inodes) {
			add(m, "InodesExhausted", fmt.Sprintf("The filesystem at %s has less than %.0f%% of its inodes left.", m.point, 100*enoughInodes),
				fmt.Sprintf("%d of %d inodes free", u.FreeInodes, u.Inodes))
		}
	}
	return out
}
