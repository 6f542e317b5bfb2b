package kernel

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

// How many zombies are too many, and for how many samples.
const (
	zombieLimit   = 20
	zombieSamples = 5
)

// zombies finds processes that have ended and that nobody waits for. Each keeps a
// process id.
type zombies struct {
	check.Info
	opts   Options
	streak int
}

func newZombies(o Options) *zombies {
	return &zombies{Info: info("zombies", 5*time.Minute, "ExcessiveZombieProcesses"), opts: o}
}

// Samples implements check.Sampler.
func (c *zombies) Samples() int { return zombieSamples }

// Run implements check.Check.
func (c *zombies) Run(ctx context.Context, _ *host.Host) ([]health.Finding, error) {
	maxAge := time.Minute
	if c.opts.Fresh {
		maxAge = 0
	}
	t, err := c.opts.Processes.Table(ctx, maxAge)
	if err != nil {
		return nil, err
	}
	var fs []health.Finding
	c.streak, fs = checkZombies(c.opts, c.streak, t.Processes)
	return fs, nil
}

// checkZombies takes how many samples in a row had too many, and returns how many
// have now.
func checkZombies(o Options, streak int, ps []proc.Stat) (int, []health.Finding) {
	names, children, n := map[int]string{}, map[int]int{}, int64(0)
	for _, p := range ps {
		names[p.PID] = p.Comm
		if p.State == 'Z' {
			children[p.PPID]++
			n++
		}
	}
	if n < zombieLimit {
		return 0, nil
	}
	if streak++; streak < zombieSamples {
		return streak, nil
	}
	parents := slices.SortedFunc(maps.Keys(children), func(a, b int) int {
		return cmp.Or(cmp.Compare(children[b], children[a]), cmp.Compare(a, b))
	})
	var most []string
	for _, p := range parents[:min(len(parents), 5)] {
		most = append(most, fmt.Sprintf("%d of %s[%d]", children[p], names[p], p))
	}
	f := check.Finding(o.Catalog, "ExcessiveZombieProcesses", "",
		fmt.Sprintf("%d or more zombies in %d samples in a row; their parent, mostly %s, does not wait for them.", zombieLimit, zombieSamples, names[parents[0]]))
	f.Evidence = fmt.Sprintf("%d zombies: %s", n, strings.Join(most, ", "))
	f.Fields = map[string]any{"zombies": n, "parent": names[parents[0]], "parent_pid": int64(parents[0])}
	return streak, []health.Finding{f}
}
