package fleet

import (
	"slices"
	"time"
)

// RepairState says what stands between a node and its replacement.
type RepairState string

// States of repair.
const (
	// RepairNone: nothing is known that would replace the node, or nothing is wrong.
	RepairNone RepairState = "None"
	// RepairPending: it will be replaced at At, unless it heals. At may have passed.
	RepairPending RepairState = "Pending"
	// RepairBlocked: too many nodes of its pool are unhealthy to replace any.
	RepairBlocked RepairState = "Blocked"
	// RepairSilenced: there is a fault that would lead to replacement, and somebody
	// has said that it shall not.
	RepairSilenced RepairState = "Silenced"
)

// Repair is when a node would be replaced.
type Repair struct {
	State RepairState
	// By is the repairer, Condition what it acts on, At from when on it may.
	By, Condition string
	At            time.Time
	// Unhealthy of Total nodes of the pool are unhealthy, where Percent is the limit.
	// They are set for RepairBlocked.
	Unhealthy, Total, Percent int
}

// PoolKey names the nodes that a repairer's limit counts together.
type PoolKey struct {
	Repairer, Pool string
}

// PoolCount counts the nodes of a pool.
type PoolCount struct {
	Unhealthy, Total int
}

// Pools counts by pool.
type Pools map[PoolKey]PoolCount

// Add counts a node. Each node is to be counted once.
func (p Pools) Add(policy *Policy, f *Facts) {
	r, pool := policy.repairer(f)
	if r == nil {
		return
	}
	key := PoolKey{r.Name, pool}
	n := p[key]
	n.Total++
	if _, _, bad := r.earliest(f, ""); bad {
		n.Unhealthy++
	}
	p[key] = n
}

// CountPools counts all nodes.
func CountPools(policy *Policy, nodes []*Facts) Pools {
	p := Pools{}
	for _, f := range nodes {
		p.Add(policy, f)
	}
	return p
}

// repairer is the first one that is responsible for the node.
func (p *Policy) repairer(f *Facts) (*Repairer, string) {
	for i := range p.Repairers {
		r := &p.Repairers[i]
		if r.PoolLabel == "" {
			return r, ""
		}
		if pool, ok := f.Labels[r.PoolLabel]; ok {
			return r, pool
		}
	}
	return nil, ""
}

// PoolLabelOf returns the label whose value is the pool of the node, and that value.
// Both are empty when the whole cluster counts as one; ok is false without a repairer.
func (p *Policy) PoolLabelOf(f *Facts) (label, value string, ok bool) {
	r, pool := p.repairer(f)
	if r == nil {
		return "", "", false
	}
	return r.PoolLabel, pool, true
}

// earliest is the rule that allows a repair first, among those about the condition
// named only, or all.
func (r *Repairer) earliest(f *Facts, only string) (condition string, at time.Time, bad bool) {
	for _, rule := range r.Rules {
		if only != "" && rule.Condition != only {
			continue
		}
		c, ok := f.Condition(rule.Condition)
		if !ok || c.Status != rule.Status {
			continue
		}
		if due := c.Since.Add(rule.After.Duration); !bad || due.Before(at) {
			condition, at, bad = rule.Condition, due, true
		}
	}
	return condition, at, bad
}

// blocked reports whether the pool has too many unhealthy nodes for any of them to be
// replaced.
func (r *Repairer) blocked(n PoolCount) bool {
	if r.MaxUnhealthyPercent <= 0 || n.Total < r.LimitFrom {
		return false
	}
	allowed := n.Total * r.MaxUnhealthyPercent
	if r.RoundUp {
		allowed = (allowed + 99) / 100 * 100
	}
	return n.Unhealthy*100 > allowed
}

func (p *Policy) repair(f *Facts, pools Pools) Repair { return p.RepairOf(f, pools, "") }

// RepairOf is when the node would be replaced if only that condition counted; empty
// for all of them.
func (p *Policy) RepairOf(f *Facts, pools Pools, only string) Repair {
	r, pool := p.repairer(f)
	if r == nil {
		return Repair{State: RepairNone}
	}
	condition, at, bad := r.earliest(f, only)
	if !bad && only != "" {
		return Repair{State: RepairNone, By: r.Name}
	}
	if !bad {
		if shadowed(f) {
			return Repair{State: RepairSilenced, By: r.Name}
		}
		return Repair{State: RepairNone, By: r.Name}
	}
	out := Repair{State: RepairPending, By: r.Name, Condition: condition, At: at}
	n := pools[PoolKey{r.Name, pool}]
	switch {
	case slices.ContainsFunc(r.SilencedBy, func(key string) bool { return silences(f.Annotations, key) }):
		out.State = RepairSilenced
	case r.blocked(n):
		out.State = RepairBlocked
		out.Unhealthy, out.Total, out.Percent = n.Unhealthy, n.Total, r.MaxUnhealthyPercent
	}
	return out
}

// shadowed reports whether the agent found what would turn a condition, and was told
// not to turn it.
func shadowed(f *Facts) bool {
	if f.Health == nil {
		return false
	}
	for _, n := range f.Health.Findings {
		if n.Shadow && n.Severity == "Fatal" {
			return true
		}
	}
	return false
}

func silences(annotations map[string]string, key string) bool {
	v, ok := annotations[key]
	return ok && v != "false"
}
