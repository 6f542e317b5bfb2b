package fleet

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// PolicyVersion and PolicyKind are what a policy file has to say of itself.
const (
	PolicyVersion = "health.ekslogs.io/v1alpha1"
	PolicyKind    = "RepairPolicy"
)

// Policy says what replaces sick nodes, and when. It is the content of the file of
// --repair-policy.
type Policy struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Repairers are asked in order: the first one that is responsible for a node counts.
	Repairers []Repairer `json:"repairers"`
}

// Repairer is something that replaces sick nodes.
type Repairer struct {
	Name string `json:"name"`
	// PoolLabel is the label of the nodes that it is responsible for; nodes with the
	// same value are one pool. Without it, it is responsible for all nodes, as one pool.
	PoolLabel string `json:"poolLabel,omitempty"`
	Rules     []Rule `json:"rules"`
	// MaxUnhealthyPercent is how many nodes of a pool may be unhealthy before none is
	// replaced any more; 0 is no limit. RoundUp rounds the allowed number up.
	MaxUnhealthyPercent int  `json:"maxUnhealthyPercent,omitempty"`
	RoundUp             bool `json:"roundUp,omitempty"`
	// LimitFrom is the size of a pool from which on the limit holds.
	LimitFrom int `json:"limitFrom,omitempty"`
	// SilencedBy are annotations of a Node that keep it from being replaced, unless
	// their value is "false".
	SilencedBy []string `json:"silencedBy,omitempty"`
}

// Rule lets a node be replaced when the condition has had the status for a time.
type Rule struct {
	Condition string          `json:"condition"`
	Status    string          `json:"status"`
	After     metav1.Duration `json:"after"`
}

// DefaultPolicy is Karpenter's on AWS and the one of EKS managed node groups. Both act
// on a False AcceleratedHardwareReady after 10 minutes and on the others after 30.
//
// Karpenter (pkg/controllers/node/health) stops when more than 20 % of a NodePool are
// unhealthy, rounded up: of three nodes one may be. EKS stops in node groups of more
// than five nodes when more than 20 % are (EKS user guide, "node auto repair"). Whether
// either is switched on cannot be seen on a Node.
func DefaultPolicy() *Policy {
	rules := []Rule{{string(health.AcceleratedHardwareReady), "False", metav1.Duration{Duration: 10 * time.Minute}}}
	half := metav1.Duration{Duration: 30 * time.Minute}
	for _, c := range []health.ConditionType{health.KernelReady, health.ContainerRuntimeReady, health.NetworkingReady, health.StorageReady} {
		rules = append(rules, Rule{string(c), "False", half})
	}
	rules = append(rules, Rule{"Ready", "False", half}, Rule{"Ready", "Unknown", half})
	return &Policy{APIVersion: PolicyVersion, Kind: PolicyKind, Repairers: []Repairer{
		{Name: "karpenter", PoolLabel: LabelNodePool, Rules: rules, MaxUnhealthyPercent: 20, RoundUp: true},
		{Name: "eks", PoolLabel: LabelNodeGroup, Rules: rules, MaxUnhealthyPercent: 20, LimitFrom: 6},
	}}
}

// ParsePolicy reads the content of a policy file, and refuses fields that it does not
// know.
func ParsePolicy(b []byte) (*Policy, error) {
	p := &Policy{}
	if err := yaml.UnmarshalStrict(b, p); err != nil {
		return nil, err
	}
	if p.APIVersion != PolicyVersion || p.Kind != PolicyKind {
		return nil, fmt.Errorf("apiVersion %q and kind %q: they must be %s and %s", p.APIVersion, p.Kind, PolicyVersion, PolicyKind)
	}
	for _, r := range p.Repairers {
		if r.Name == "" {
			return nil, fmt.Errorf("a repairer has no name")
		}
		if r.MaxUnhealthyPercent < 0 || r.MaxUnhealthyPercent > 100 {
			return nil, fmt.Errorf("repairer %s: maxUnhealthyPercent %d is not between 0 and 100", r.Name, r.MaxUnhealthyPercent)
		}
		for _, rule := range r.Rules {
			switch {
			case rule.Condition == "":
				return nil, fmt.Errorf("repairer %s: a rule names no condition", r.Name)
			case rule.Status != "True" && rule.Status != "False" && rule.Status != "Unknown":
				return nil, fmt.Errorf("repairer %s: status %q of %s: it must be \"True\", \"False\" or \"Unknown\", in quotes", r.Name, rule.Status, rule.Condition)
			case rule.After.Duration < 0:
				return nil, fmt.Errorf("repairer %s: %s after %s: it must not be negative", r.Name, rule.Condition, rule.After.Duration)
			}
		}
	}
	return p, nil
}

// Keep is what Facts have to hold for the policy.
func (p *Policy) Keep() Keep {
	var k Keep
	for _, r := range p.Repairers {
		if r.PoolLabel != "" {
			k.Labels = append(k.Labels, r.PoolLabel)
		}
		k.Annotations = append(k.Annotations, r.SilencedBy...)
	}
	return k
}
