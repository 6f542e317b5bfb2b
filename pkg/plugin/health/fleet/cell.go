package fleet

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

// StaleAfter is how old a heartbeat may be. The EKS agent, our agent and the kubelet
// all give one at least every five minutes: two of them are missing then.
const StaleAfter = 11 * time.Minute

// State is what is known about one part of a node.
type State string

// States of a cell.
const (
	// Healthy: evaluated lately, and well.
	Healthy State = "Healthy"
	// Sick: found to be at fault. It stays so when the writer falls silent, since
	// whoever repairs nodes goes by it too.
	Sick State = "Sick"
	// Absent: nobody watches it. It is not healthy.
	Absent State = "NotMonitored"
	// Stale: what was known is too old, or the writer itself does not know.
	Stale State = "Stale"
)

// Columns of cells, in the order of Row.Cells.
const (
	Kernel = iota
	Runtime
	Network
	Storage
	Accel
	Ready
	numColumns
)

// ColumnConditions returns the condition type behind each column. The last one,
// Ready, takes the pressure conditions and NetworkUnavailable in as well.
func ColumnConditions() [numColumns]string {
	return [numColumns]string{
		string(health.KernelReady), string(health.ContainerRuntimeReady), string(health.NetworkingReady),
		string(health.StorageReady), string(health.AcceleratedHardwareReady), "Ready",
	}
}

// kubeletPressures are conditions of which True is bad. Nobody gives
// NetworkUnavailable a heartbeat: it is written once.
func kubeletPressures() []string {
	return []string{"MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"}
}

// columnOf is the column that a condition belongs to, or -1.
func columnOf(kind string) int {
	for i, c := range ColumnConditions() {
		if c == kind {
			return i
		}
	}
	for _, p := range kubeletPressures() {
		if p == kind {
			return Ready
		}
	}
	return -1
}

// Cell is one part of a node.
type Cell struct {
	State State
	// Reason is why it is sick or stale. "blind" and "no heartbeat" are ours.
	Reason, Message string
	// Condition is the type of the condition that it comes from.
	Condition string
	// Since is when the state was entered by the condition's own account.
	Since time.Time
	// Heartbeat is when it was last evaluated; zero when unknown.
	Heartbeat time.Time
	// Silent says that the heartbeat is older than StaleAfter.
	Silent bool
}

// cells evaluates the columns at now.
func cells(f *Facts, now time.Time) [numColumns]Cell {
	var out [numColumns]Cell
	for i, kind := range ColumnConditions() {
		out[i] = Cell{State: Absent, Condition: kind}
		if c, ok := f.Condition(kind); ok {
			out[i] = cell(c, now)
		}
		if out[i].State == Healthy && i != Ready {
			if m, ok := blind(f, kind); ok {
				out[i].State, out[i].Reason, out[i].Message = Stale, "blind", m.Message
			}
		}
	}
	for _, kind := range kubeletPressures() {
		c, ok := f.Condition(kind)
		if ok && c.Status == "True" && out[Ready].State != Sick {
			out[Ready] = Cell{State: Sick, Reason: kind, Message: c.Message, Condition: kind, Since: c.Since, Heartbeat: c.Heartbeat}
		}
	}
	return out
}

// cell evaluates a condition of which True is good.
func cell(c Condition, now time.Time) Cell {
	out := Cell{Condition: c.Type, Since: c.Since, Heartbeat: c.Heartbeat}
	out.Silent = c.Heartbeat.IsZero() || now.Sub(c.Heartbeat) > StaleAfter
	switch {
	case c.Status == "False":
		out.State, out.Reason, out.Message = Sick, c.Reason, c.Message
	case c.Status != "True":
		out.State, out.Reason, out.Message = Stale, c.Reason, c.Message
	case c.Heartbeat.IsZero():
		out.State, out.Reason = Stale, "no heartbeat"
	case out.Silent:
		out.State = Stale
	default:
		out.State = Healthy
	}
	return out
}

// blind is the monitor of the condition, if it is watching but sees nothing.
func blind(f *Facts, kind string) (annotation.Monitor, bool) {
	if f.Health == nil || f.Health.Standby != "" {
		return annotation.Monitor{}, false
	}
	for _, m := range f.Health.Monitors {
		if m.Condition == kind && m.State == annotation.MonitorBlind {
			return m, true
		}
	}
	return annotation.Monitor{}, false
}
