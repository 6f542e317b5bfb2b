package runtime

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

const (
	// frozenLimit is how long a cgroup may be frozen: checkpoints and debuggers do it for
	// moments.
	frozenLimit = 10 * time.Minute
	// frozenCgroups bounds the cgroups that are looked at.
	frozenCgroups = 5000
)

// frozen finds containers whose processes somebody has frozen and not let go on: they
// look alive and do nothing.
type frozen struct {
	check.Info
	opts  Options
	since map[string]time.Time
	now   func() time.Time
}

func newFrozen(o Options) *frozen {
	return &frozen{Info: info("frozen-containers", 5*time.Minute, "ContainerFrozen"), opts: o, now: time.Now}
}

// Run implements check.Check.
func (c *frozen) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	var roots, cold []string
	for _, pattern := range []string{"/sys/fs/cgroup/kubepods*", "/sys/fs/cgroup/unified/kubepods*", "/sys/fs/cgroup/freezer/kubepods*"} {
		dirs, err := h.Glob(pattern)
		if err != nil {
			return nil, err
		}
		roots = append(roots, dirs...)
	}
	if len(roots) == 0 {
		return nil, check.ErrNoData
	}
	left := frozenCgroups
	for len(roots) > 0 && left > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		dir := roots[0]
		roots, left = roots[1:], left-1
		if isFrozen(h, dir) {
			cold = append(cold, dir) // and all below
			continue
		}
		entries, err := h.ReadDir(dir)
		if err != nil {
			continue // it has ended
		}
		for _, e := range entries {
			if e.IsDir() {
				roots = append(roots, path.Join(dir, e.Name()))
			}
		}
	}
	var fs []health.Finding
	c.since, fs = checkFrozen(c.opts, c.since, cold, c.now())
	return fs, nil
}

// isFrozen reads cgroup.events (version 2) or freezer.state (version 1).
func isFrozen(h *host.Host, dir string) bool {
	if s, err := h.ReadString(dir + "/cgroup.events"); err == nil {
		return slices.Contains(strings.Split(s, "\n"), "frozen 1")
	}
	s, err := h.ReadString(dir + "/freezer.state")
	return err == nil && s == "FROZEN"
}

var (
	podInCgroup       = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})`)
	containerInCgroup = regexp.MustCompile(`([0-9a-f]{64})(?:\.scope)?$`)
)

// checkFrozen takes since when each cgroup has been frozen.
func checkFrozen(o Options, before map[string]time.Time, cold []string, now time.Time) (map[string]time.Time, []health.Finding) {
	after, out := map[string]time.Time{}, []health.Finding(nil)
	for _, dir := range cold {
		since, ok := before[dir]
		if !ok {
			since = now
		}
		after[dir] = since
		if now.Sub(since) <= frozenLimit {
			continue
		}
		subject, fields := path.Base(dir), map[string]any{"cgroup": dir}
		if m := podInCgroup.FindStringSubmatch(dir); m != nil {
			uid := strings.ReplaceAll(m[1], "_", "-")
			subject, fields["pod_uid"] = "pod "+uid, uid
		}
		if m := containerInCgroup.FindStringSubmatch(dir); m != nil {
			subject, fields["container_id"] = "container "+m[1][:12], m[1]
		}
		f := check.Finding(o.Catalog, "ContainerFrozen", subject, fmt.Sprintf("The processes of %s have been frozen for more than %d minutes.", subject, int(frozenLimit.Minutes())))
		f.Evidence = dir + " is frozen since " + since.UTC().Format(time.RFC3339)
		f.Fields = fields
		out = append(out, f)
	}
	return after, out
}
