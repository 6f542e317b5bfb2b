package incident

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// rcu reads RCU stalls (kernel/rcu/tree_stall.h, in older kernels tree.c). Which CPUs
// and for how long is in the first line or, since 3.19, in lines after it.
type rcu struct {
	holder
	clock
}

var (
	rcuStall   = regexp.MustCompile(`^(?:rcu: )?INFO: (?P<flavor>rcu\w*) (?P<self>self-)?detected (?:expedited )?stalls? on (?:CPUs?|tasks)`)
	rcuCPUs    = regexp.MustCompile(`\{ ?([^}]*)\}`)
	rcuJiffies = regexp.MustCompile(`\bt=(\d+) jiffies`)
)

func newRCU() *rcu { return &rcu{} }

func (*rcu) Literals() []string {
	return []string{"detected stall", "detected expedited stall", " jiffies"}
}
func (*rcu) Sources() []host.Source { return kernelLog }

func (d *rcu) Detect(r host.Record) []health.Finding {
	now := d.now(r)
	g := groups(rcuStall, r.Message)
	if g == nil {
		if it := d.get("stall"); it != nil {
			d.details(it.f.Fields, r.Message)
		}
		return nil
	}
	out := d.Flush(now)
	fields := map[string]any{"flavor": clean(g["flavor"])}
	d.details(fields, r.Message)
	d.hold("stall", now.Add(blockTime), finding(r, health.KernelReady, health.Warning, "RCUStall", clean(g["flavor"]),
		"A CPU or task kept the kernel from freeing memory ("+clean(g["flavor"])+" stall)", fields))
	return out
}

// details adds the CPUs and the duration, where a line tells them.
func (*rcu) details(fields map[string]any, line string) {
	if m := rcuJiffies.FindStringSubmatch(line); m != nil && fields["jiffies"] == nil {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			fields["jiffies"] = n
		}
	}
	m := rcuCPUs.FindStringSubmatch(line)
	if m == nil || fields["cpus"] != nil {
		return
	}
	cpus := []int64{}
	for _, word := range strings.Fields(m[1]) {
		digits := strings.TrimRight(word, "-.!,OoNDP")
		if n, err := strconv.ParseInt(digits, 10, 32); err == nil {
			cpus = append(cpus, n)
		}
	}
	if len(cpus) > 0 && len(cpus) <= 64 {
		fields["cpus"] = cpus
	}
}
