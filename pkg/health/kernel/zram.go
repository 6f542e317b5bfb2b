package kernel

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// zram finds a node that swaps into compressed memory in earnest.
type zram struct {
	check.Info
	opts Options
}

func newZram(o Options) *zram {
	return &zram{info("zram", 5*time.Minute, "ZramHighUsage"), o}
}

// zramDevice is what a zram device holds (Documentation/admin-guide/blockdev/zram.rst).
type zramDevice struct {
	name       string
	orig, size uint64 // bytes before compression, and the size of the disk
}

// Run implements check.Check.
func (c *zram) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	dirs, err := h.Glob("/sys/block/zram*")
	if err != nil {
		return nil, err
	}
	var devices []zramDevice
	for _, dir := range dirs {
		d, err := readZram(h, dir)
		if err != nil {
			return nil, err
		}
		if d.size > 0 { // 0: not set up
			devices = append(devices, d)
		}
	}
	if len(devices) == 0 {
		return nil, check.ErrNoData
	}
	return checkZram(c.opts, devices), nil
}

func readZram(h *host.Host, dir string) (d zramDevice, err error) {
	d.name = path.Base(dir)
	size, err := h.ReadString(dir + "/disksize")
	if err != nil {
		return d, err
	}
	if d.size, err = strconv.ParseUint(size, 10, 64); err != nil {
		return d, fmt.Errorf("%s/disksize: %w", dir, err)
	}
	stat, err := h.ReadString(dir + "/mm_stat")
	if err != nil {
		return d, err
	}
	orig, _, _ := strings.Cut(stat, " ")
	if d.orig, err = strconv.ParseUint(orig, 10, 64); err != nil {
		return d, fmt.Errorf("%s/mm_stat: %w", dir, err)
	}
	return d, nil
}

func checkZram(o Options, devices []zramDevice) []health.Finding {
	var fs []health.Finding
	for _, d := range devices {
		if d.size == 0 || float64(d.orig) <= o.ZramLimit*float64(d.size) {
			continue
		}
		f := check.Finding(o.Catalog, "ZramHighUsage", d.name,
			fmt.Sprintf("The node swaps: %s holds more than %.0f%% of its size.", d.name, 100*o.ZramLimit))
		f.Evidence = fmt.Sprintf("%s: %d of %d bytes", d.name, d.orig, d.size)
		f.Fields = map[string]any{"device": d.name, "bytes": clamp(d.orig), "size": clamp(d.size)}
		fs = append(fs, f)
	}
	return fs
}
