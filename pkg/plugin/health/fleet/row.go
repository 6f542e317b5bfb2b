package fleet

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

// Verdict is how a node is, in one word.
type Verdict string

// Verdicts, from worst to best.
const (
	// VerdictSick: a condition says that something is at fault.
	VerdictSick Verdict = "Sick"
	// VerdictStale: nothing is at fault as far as known, but what is known is too old.
	VerdictStale Verdict = "Stale"
	// VerdictUnmonitored: the kubelet is well and no agent watches the rest.
	VerdictUnmonitored Verdict = "Unmonitored"
	// VerdictWarning: all conditions are well, and there were warnings lately.
	VerdictWarning Verdict = "Warning"
	// VerdictHealthy: all that is watched is well.
	VerdictHealthy Verdict = "Healthy"
)

// Rank orders verdicts: a higher one is worse.
func (v Verdict) Rank() int {
	switch v {
	case VerdictSick:
		return 4
	case VerdictStale:
		return 3
	case VerdictWarning:
		return 2
	case VerdictUnmonitored:
		return 1
	}
	return 0
}

// GPUs counts the accelerators of a node, or of several.
type GPUs struct {
	OK    int `json:"ok"`
	Total int `json:"total"`
}

// Row is a node at a moment.
type Row struct {
	*Facts
	Verdict Verdict
	Cells   [numColumns]Cell
	// Since is when the verdict's cause began, as far as known.
	Since time.Time
	// Heartbeat is the oldest one of the agent's conditions, or else the kubelet's.
	Heartbeat time.Time
	Repair    Repair
	GPUs      GPUs
	// Warnings are those of the window, one for each reason, the newest first.
	// WarningsKnown is false when neither Events nor an annotation could be read.
	Warnings      []Warning
	WarningsKnown bool
	// Agent says who watches the node: "ekslogs v1.2.3", "eks", "other" or empty.
	Agent string
	// Reason and Message are those of the worst cell, or of the newest warning.
	Reason, Message string
}

// View is what a Row depends on beside its Facts.
type View struct {
	// Now is the API server's time.
	Now    time.Time
	Policy *Policy
	// Pools counts the nodes that count for the policy's limits.
	Pools Pools
	// Window is how far back warnings count.
	Window time.Duration
	// Events are the occurrences of each node. HaveEvents is false when Events could
	// not be read.
	Events     map[string][]Occurrence
	HaveEvents bool
}

// Evaluate says how the node is.
func (v *View) Evaluate(f *Facts) *Row {
	r := &Row{Facts: f, Cells: cells(f, v.Now), GPUs: gpus(f), Agent: agent(f)}
	r.Warnings = warnings(f, v.Events[f.Name], v.Now.Add(-v.Window))
	r.WarningsKnown = v.HaveEvents || f.Health != nil
	r.Verdict = verdict(r)
	r.Heartbeat = oldestHeartbeat(r)
	r.Since, r.Reason, r.Message = cause(r)
	r.Repair = v.Policy.repair(f, v.Pools)
	return r
}

func verdict(r *Row) Verdict {
	monitored, stale := false, false
	for i, c := range r.Cells {
		switch c.State {
		case Sick:
			return VerdictSick
		case Stale:
			stale = true
		case Absent:
			// The kubelet has to say that it is well; the others may be off.
			stale = stale || i == Ready
			continue
		}
		monitored = monitored || i != Ready
	}
	switch {
	case stale:
		return VerdictStale
	case !monitored:
		return VerdictUnmonitored
	case len(r.Warnings) > 0:
		return VerdictWarning
	}
	return VerdictHealthy
}

// oldestHeartbeat is zero when a heartbeat that should be there is not.
func oldestHeartbeat(r *Row) time.Time {
	var oldest time.Time
	seen := false
	for i, c := range r.Cells {
		if c.State == Absent || (i == Ready && seen) {
			continue
		}
		if !seen || c.Heartbeat.Before(oldest) {
			oldest = c.Heartbeat
		}
		seen = true
	}
	return oldest
}

// cause is the earliest cell in the verdict's state, or the newest warning, or, for a
// node that is well, when it last became so.
func cause(r *Row) (since time.Time, reason, message string) {
	state := Healthy
	switch r.Verdict {
	case VerdictSick:
		state = Sick
	case VerdictStale:
		state = Stale
	case VerdictWarning:
		w := r.Warnings[0]
		return w.First, w.Reason, w.Message
	}
	found := false
	for _, c := range r.Cells {
		if c.State != state {
			continue
		}
		at := c.Since
		if state == Stale && c.Silent && !c.Heartbeat.IsZero() {
			at = c.Heartbeat
		}
		earlier := at.Before(since) != (state == Healthy)
		if !found || earlier {
			since, reason, message, found = at, c.Reason, c.Message, true
		}
	}
	if state == Healthy {
		reason, message = "", ""
	}
	return since, reason, message
}

// gpus are counted by the agent's verdicts, or else by the device plugin, which takes
// those that it finds unhealthy out of what can be allocated.
func gpus(f *Facts) GPUs {
	if f.Health == nil || len(f.Health.GPUs) == 0 {
		return GPUs{OK: min(f.GPUAllocatable, f.GPUCapacity), Total: f.GPUCapacity}
	}
	bad := 0
	for _, g := range f.Health.GPUs {
		if g.Verdict != annotation.VerdictOK {
			bad++
		}
	}
	// GPUs that are ok are left out of an annotation that would be too long.
	total := max(len(f.Health.GPUs), f.GPUCapacity)
	return GPUs{OK: total - bad, Total: total}
}

func agent(f *Facts) string {
	if f.Health != nil {
		name := "ekslogs"
		if f.Health.AgentVersion != "" {
			name += " " + f.Health.AgentVersion
		}
		if f.Health.Standby != "" {
			name += " (standby)"
		}
		return name
	}
	if f.HealthError != "" {
		return "ekslogs (unreadable)"
	}
	ours := ColumnConditions()
	for _, kind := range ours[:Ready] {
		if _, ok := f.Condition(kind); !ok {
			continue
		}
		if f.EKSAgent {
			return "eks"
		}
		return "other"
	}
	return ""
}
