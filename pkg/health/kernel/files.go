package kernel

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// openFiles finds a node that runs out of open files (fs.file-max).
type openFiles struct {
	check.Info
	opts Options
}

func newOpenFiles(o Options) *openFiles {
	return &openFiles{info("open-files", 5*time.Minute, "ApproachingMaxOpenFiles"), o}
}

// Run implements check.Check.
func (c *openFiles) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	s, err := h.ReadString("/proc/sys/fs/file-nr")
	if err != nil {
		return nil, err
	}
	open, limit, err := parseFileNr(s)
	if err != nil {
		return nil, err
	}
	return checkOpenFiles(c.opts, open, limit), nil
}

// parseFileNr parses fs.file-nr: allocated, free (0 since Linux 2.6) and the limit,
// which may be larger than an int64.
func parseFileNr(s string) (open, limit uint64, err error) {
	f := strings.Fields(s)
	if len(f) != 3 {
		return 0, 0, fmt.Errorf("fs.file-nr: %q is not three numbers", s)
	}
	if open, err = strconv.ParseUint(f[0], 10, 64); err == nil {
		limit, err = strconv.ParseUint(f[2], 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("fs.file-nr: %w", err)
	}
	return open, limit, nil
}

func checkOpenFiles(o Options, open, limit uint64) []health.Finding {
	if limit == 0 || float64(open) < o.UsageLimit*float64(limit) {
		return nil
	}
	f := check.Finding(o.Catalog, "ApproachingMaxOpenFiles", "",
		fmt.Sprintf("Open files take %.0f%% or more of fs.file-max=%d; at the limit no file and no socket can be opened.", 100*o.UsageLimit, limit))
	f.Evidence = fmt.Sprintf("fs.file-nr: %d of %d", open, limit)
	f.Fields = map[string]any{"open": clamp(open), "limit": clamp(limit)}
	return []health.Finding{f}
}

func clamp(n uint64) int64 { return int64(min(n, math.MaxInt64)) }
