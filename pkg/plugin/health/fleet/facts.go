// Package fleet says how the nodes of a cluster are, from what the API server knows
// of them: it turns a Node into Facts, and Facts with the time into a Row. It does no
// I/O, so that every verdict is a matter of a table test.
//
// All text in Facts is free of control characters and bounded, whoever wrote it.
package fleet

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// Bounds on what is kept of one Node. A Node of a hostile or broken writer may hold
// megabytes.
const (
	maxConditions = 64
	maxReason     = 128
	maxMessage    = 2 << 10
	maxValue      = 256
)

// Labels that say what a node is. GPU feature discovery and the cloud's controllers
// set them.
const (
	LabelInstanceType  = "node.kubernetes.io/instance-type"
	LabelZone          = "topology.kubernetes.io/zone"
	LabelNodePool      = "karpenter.sh/nodepool"
	LabelNodeGroup     = "eks.amazonaws.com/nodegroup"
	LabelNodeGroupAMI  = "eks.amazonaws.com/nodegroup-image"
	LabelKarpenterAMI  = "karpenter.k8s.aws/instance-ami-id"
	LabelDriver        = "nvidia.com/cuda.driver-version.full"
	resourceNvidiaGPUs = "nvidia.com/gpu"
)

func knownLabels() []string {
	return []string{LabelInstanceType, LabelZone, LabelNodePool, LabelNodeGroup, LabelNodeGroupAMI, LabelKarpenterAMI, LabelDriver}
}

// Facts is what counts of one Node, a small part of its size. It is immutable once
// made.
type Facts struct {
	Name string
	// Labels are those that say what the node is, and those asked for.
	Labels map[string]string
	// Annotations are the keys asked for.
	Annotations map[string]string
	// Conditions are the first ones of the Node, at most 64. More says how many were
	// left out.
	Conditions []Condition
	More       int
	// Kernel and OS are as the kubelet says them.
	Kernel, OS string
	Cordoned   bool
	// GPUCapacity and GPUAllocatable are the device plugin's counts.
	GPUCapacity, GPUAllocatable int
	// Health is the agent's annotation, nil without one. HealthError says why one that
	// is there could not be read.
	Health      *annotation.Health
	HealthError string
	// EKSAgent says that the EKS node monitoring agent wrote to the Node.
	EKSAgent bool
}

// Condition is a condition of a Node.
type Condition struct {
	Type, Status, Reason, Message string
	// Since is when Status last changed, Heartbeat when it was last evaluated; zero
	// when the writer does not say.
	Since, Heartbeat time.Time
}

// Keep names what Facts shall hold beyond the usual.
type Keep struct {
	Labels, Annotations []string
}

// FromNode takes the facts out of a Node, which can be dropped afterwards.
func FromNode(n *corev1.Node, keep Keep) *Facts {
	f := &Facts{
		Name:     text(n.Name, maxValue),
		Labels:   pick(n.Labels, append(knownLabels(), keep.Labels...)),
		Kernel:   text(n.Status.NodeInfo.KernelVersion, maxValue),
		OS:       text(n.Status.NodeInfo.OSImage, maxValue),
		Cordoned: n.Spec.Unschedulable,
	}
	f.Annotations = pick(n.Annotations, keep.Annotations)
	f.GPUCapacity = quantity(n.Status.Capacity)
	f.GPUAllocatable = quantity(n.Status.Allocatable)
	conditions := n.Status.Conditions
	if len(conditions) > maxConditions {
		f.More = len(conditions) - maxConditions
		conditions = important(conditions)
	}
	f.Conditions = make([]Condition, 0, len(conditions))
	for i := range conditions {
		c := &conditions[i]
		f.Conditions = append(f.Conditions, Condition{
			Type: text(string(c.Type), maxReason), Status: text(string(c.Status), maxReason),
			Reason: text(c.Reason, maxReason), Message: text(c.Message, maxMessage),
			Since: c.LastTransitionTime.Time, Heartbeat: c.LastHeartbeatTime.Time,
		})
	}
	if value, ok := n.Annotations[annotation.Key]; ok {
		f.readHealth(value)
	}
	for i := range n.ManagedFields {
		if strings.Contains(n.ManagedFields[i].Manager, "node-monitoring-agent") {
			f.EKSAgent = true
		}
	}
	return f
}

// important keeps the conditions that a verdict depends on, wherever they stand, and
// fills up with others.
func important(all []corev1.NodeCondition) []corev1.NodeCondition {
	var first, rest []corev1.NodeCondition
	for i := range all {
		if columnOf(string(all[i].Type)) >= 0 {
			first = append(first, all[i])
		} else {
			rest = append(rest, all[i])
		}
	}
	return append(first, rest...)[:maxConditions]
}

func (f *Facts) readHealth(value string) {
	// The agent's own bound, with room for a later one.
	if len(value) > 4*annotation.MaxBytes {
		f.HealthError = "the annotation is larger than any agent writes it"
		return
	}
	h, err := annotation.Decode(value)
	if err != nil {
		f.HealthError = text(err.Error(), maxMessage)
		return
	}
	cleanHealth(&h)
	f.Health = &h
}

func cleanHealth(h *annotation.Health) {
	h.AgentVersion, h.Standby = text(h.AgentVersion, maxReason), text(h.Standby, maxValue)
	for i := range h.Monitors {
		m := &h.Monitors[i]
		m.Name, m.Condition, m.Message = text(m.Name, maxReason), text(m.Condition, maxReason), text(m.Message, maxValue)
	}
	for i := range h.Findings {
		n := &h.Findings[i]
		n.Reason, n.Subject, n.Evidence = text(n.Reason, maxReason), text(n.Subject, maxValue), text(n.Evidence, maxMessage)
		n.Condition, n.Severity, n.Clears = text(n.Condition, maxReason), text(n.Severity, maxReason), text(n.Clears, maxValue)
	}
	for i := range h.GPUs {
		g := &h.GPUs[i]
		g.UUID, g.PCI, g.Reason = text(g.UUID, maxReason), text(g.PCI, maxReason), text(g.Reason, maxReason)
		g.Verdict = annotation.Verdict(text(string(g.Verdict), maxReason))
	}
	for i := range h.Incidents {
		n := &h.Incidents[i]
		n.Reason, n.Subject, n.Ended = text(n.Reason, maxReason), text(n.Subject, maxValue), text(n.Ended, maxValue)
		n.Condition, n.Severity = text(n.Condition, maxReason), text(n.Severity, maxReason)
	}
}

// Condition returns the condition of that type.
func (f *Facts) Condition(kind string) (Condition, bool) {
	i := slices.IndexFunc(f.Conditions, func(c Condition) bool { return c.Type == kind })
	if i < 0 {
		return Condition{}, false
	}
	return f.Conditions[i], true
}

// Pool is the Karpenter node pool or the EKS node group of the node, or empty.
func (f *Facts) Pool() string {
	if p := f.Labels[LabelNodePool]; p != "" {
		return p
	}
	return f.Labels[LabelNodeGroup]
}

// AMI is the machine image of the node as far as its labels tell, or empty.
func (f *Facts) AMI() string {
	if a := f.Labels[LabelNodeGroupAMI]; a != "" {
		return a
	}
	return f.Labels[LabelKarpenterAMI]
}

func pick(from map[string]string, keys []string) map[string]string {
	var out map[string]string
	for _, k := range keys {
		if v, ok := from[k]; ok {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = text(v, maxValue)
		}
	}
	return out
}

func quantity(of corev1.ResourceList) int {
	q, ok := of[resourceNvidiaGPUs]
	if !ok {
		return 0
	}
	return int(min(max(q.Value(), 0), 1<<20))
}

// text is s without control characters, cut before it is cleaned, so that a message of
// a megabyte costs nothing.
func text(s string, limit int) string {
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return term.Clean(s)
}
