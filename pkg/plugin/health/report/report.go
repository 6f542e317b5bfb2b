// Package report is the typed form of "kubectl health nodes summary -o json": public
// API, versioned, documented in docs/kubectl-health.md. Fields are added, never changed
// within a version.
package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
)

// Version and Kind are what a list says of itself.
const (
	Version = "health.ekslogs.io/v1alpha1"
	Kind    = "NodeHealthList"
)

// NodeHealthList is the health of nodes at a moment.
type NodeHealthList struct {
	metav1.TypeMeta `json:",inline"`
	// ServerTime is the API server's time of the evaluation.
	ServerTime metav1.Time `json:"serverTime"`
	// Totals count the nodes that were asked for, before --unhealthy leaves any out.
	Totals fleet.Totals `json:"totals"`
	// Groups are present with --group-by.
	Groups []Group `json:"groups,omitempty"`
	// Shares are what nodes with the same reason have in common beyond chance.
	Shares []Share `json:"shares,omitempty"`
	// Missing says what could not be read, and what that leaves out.
	Missing []string     `json:"missing,omitempty"`
	Items   []NodeHealth `json:"items"`
}

// Group is the totals of the nodes with one value of a label.
type Group struct {
	Label  string       `json:"label"`
	Value  string       `json:"value"`
	Totals fleet.Totals `json:"totals"`
}

// Share is what nodes with the same reason have in common.
type Share struct {
	Reason string `json:"reason"`
	// Trait is "AMI", "kernel", "driver", "instance type", "zone" or "nodepool".
	Trait string `json:"trait"`
	Value string `json:"value"`
	// With of Reasoned nodes with the reason have the value, Having of Total nodes do.
	With     int `json:"with"`
	Reasoned int `json:"reasoned"`
	Having   int `json:"having"`
	Total    int `json:"total"`
	// P is Fisher's exact test, one-sided.
	P float64 `json:"p"`
}

// NodeHealth is the health of one node.
type NodeHealth struct {
	Metadata Metadata      `json:"metadata"`
	Verdict  fleet.Verdict `json:"verdict"`
	Reason   string        `json:"reason,omitempty"`
	Message  string        `json:"message,omitempty"`
	Since    *metav1.Time  `json:"since,omitempty"`
	// Heartbeat is the oldest one of those that the verdict rests on.
	Heartbeat *metav1.Time `json:"heartbeat,omitempty"`
	// Cells are kernel, runtime, network, storage, accel and ready, in this order.
	Cells []Cell `json:"cells"`
	// Warnings are absent when they are not known: see WarningsKnown.
	Warnings      []Warning  `json:"warnings,omitempty"`
	WarningsKnown bool       `json:"warningsKnown"`
	Repair        Repair     `json:"repair"`
	GPUs          fleet.GPUs `json:"gpus"`
	Agent         string     `json:"agent,omitempty"`
	InstanceType  string     `json:"instanceType,omitempty"`
	Zone          string     `json:"zone,omitempty"`
	NodePool      string     `json:"nodePool,omitempty"`
	AMI           string     `json:"ami,omitempty"`
	Kernel        string     `json:"kernel,omitempty"`
	Cordoned      bool       `json:"cordoned,omitempty"`
}

// Metadata names the node.
type Metadata struct {
	Name string `json:"name"`
}

// Cell is one part of a node.
type Cell struct {
	Name      string       `json:"name"`
	Condition string       `json:"condition"`
	State     fleet.State  `json:"state"`
	Reason    string       `json:"reason,omitempty"`
	Message   string       `json:"message,omitempty"`
	Since     *metav1.Time `json:"since,omitempty"`
	Heartbeat *metav1.Time `json:"heartbeat,omitempty"`
}

// Warning is one reason of the window.
type Warning struct {
	Reason  string      `json:"reason"`
	Message string      `json:"message,omitempty"`
	First   metav1.Time `json:"first"`
	Last    metav1.Time `json:"last"`
	Count   int         `json:"count"`
	Active  bool        `json:"active,omitempty"`
}

// Repair is when the node would be replaced.
type Repair struct {
	State     fleet.RepairState `json:"state"`
	By        string            `json:"by,omitempty"`
	Condition string            `json:"condition,omitempty"`
	At        *metav1.Time      `json:"at,omitempty"`
	Unhealthy int               `json:"unhealthy,omitempty"`
	Total     int               `json:"total,omitempty"`
	Percent   int               `json:"percent,omitempty"`
}

// CellNames are the names of the cells, in order.
func CellNames() []string {
	return []string{"kernel", "runtime", "network", "storage", "accel", "ready"}
}

// FromRow is the typed form of a row.
func FromRow(r *fleet.Row) NodeHealth {
	out := NodeHealth{
		Metadata: Metadata{r.Name}, Verdict: r.Verdict, Reason: r.Reason, Message: r.Message,
		Since: stamp(r.Since), Heartbeat: stamp(r.Heartbeat), WarningsKnown: r.WarningsKnown,
		Repair: Repair{
			State: r.Repair.State, By: r.Repair.By, Condition: r.Repair.Condition, At: stamp(r.Repair.At),
			Unhealthy: r.Repair.Unhealthy, Total: r.Repair.Total, Percent: r.Repair.Percent,
		},
		GPUs: r.GPUs, Agent: r.Agent, InstanceType: r.Labels[fleet.LabelInstanceType], Zone: r.Labels[fleet.LabelZone],
		NodePool: r.Pool(), AMI: r.AMI(), Kernel: r.Facts.Kernel, Cordoned: r.Cordoned,
	}
	for i, c := range r.Cells {
		out.Cells = append(out.Cells, Cell{CellNames()[i], c.Condition, c.State, c.Reason, c.Message, stamp(c.Since), stamp(c.Heartbeat)})
	}
	for _, w := range r.Warnings {
		out.Warnings = append(out.Warnings, Warning{w.Reason, w.Message, metav1.NewTime(w.First), metav1.NewTime(w.Last), w.Count, w.Active})
	}
	return out
}

// Object is the list in the form that the printers of cli-runtime take.
func (l *NodeHealthList) Object() (*unstructured.Unstructured, error) {
	l.TypeMeta = metav1.TypeMeta{APIVersion: Version, Kind: Kind}
	if l.Items == nil {
		l.Items = []NodeHealth{}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(l)
	return &unstructured.Unstructured{Object: content}, err
}

func stamp(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewTime(t)
	return &m
}
