package fleet

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

func pooled(n *corev1.Node, label string) *corev1.Node {
	n.Labels = map[string]string{label: "pool"}
	return n
}

func TestRepairClock(t *testing.T) {
	ready := cond("Ready", "True", "")
	gpu := at(cond("AcceleratedHardwareReady", "False", "NvidiaXID79Error"), 4*time.Minute, 0)
	kernel := at(cond("KernelReady", "False", "X"), 33*time.Minute, 0)
	for _, tc := range []struct {
		name  string
		node  *corev1.Node
		state RepairState
		in    time.Duration
	}{
		{"accelerators after 10 minutes", pooled(node("a", ready, gpu), LabelNodePool), RepairPending, 6 * time.Minute},
		{"others after 30, which have passed", pooled(node("a", ready, kernel), LabelNodePool), RepairPending, -3 * time.Minute},
		{"the earliest counts", pooled(node("a", ready, gpu, kernel), LabelNodePool), RepairPending, -3 * time.Minute},
		{"the kubelet is gone", pooled(node("a", at(cond("Ready", "Unknown", ""), 10*time.Minute, 0)), LabelNodePool), RepairPending, 20 * time.Minute},
		{"a node group", pooled(node("a", ready, gpu), LabelNodeGroup), RepairPending, 6 * time.Minute},
		{"nobody repairs", node("a", ready, gpu), RepairNone, 0},
		{"nothing is wrong", pooled(node("a", ready), LabelNodePool), RepairNone, 0},
		{"pressure is no reason to replace", pooled(node("a", ready, cond("DiskPressure", "True", "")), LabelNodePool), RepairNone, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := evaluate(tc.node).Repair
			if r.State != tc.state {
				t.Fatalf("state %s, want %s", r.State, tc.state)
			}
			if got := r.At.Sub(now()); tc.state == RepairPending && got != tc.in {
				t.Errorf("in %s, want %s", got, tc.in)
			}
		})
	}
}

func TestRepairIsBlockedByThePool(t *testing.T) {
	for _, tc := range []struct {
		label           string
		unhealthy, size int
		want            RepairState
	}{
		{LabelNodePool, 1, 3, RepairPending}, // Karpenter's own example of rounding up
		{LabelNodePool, 3, 12, RepairPending},
		{LabelNodePool, 4, 12, RepairBlocked},
		{LabelNodeGroup, 2, 5, RepairPending}, // no limit below six
		{LabelNodeGroup, 2, 12, RepairPending},
		{LabelNodeGroup, 3, 12, RepairBlocked},
	} {
		p := DefaultPolicy()
		var all []*Facts
		for i := range tc.size {
			status := "True"
			if i < tc.unhealthy {
				status = "False"
			}
			all = append(all, FromNode(pooled(node("a", cond("Ready", "True", ""), cond("KernelReady", status, "")), tc.label), p.Keep()))
		}
		v := View{Now: now(), Policy: p, Pools: CountPools(p, all)}
		r := v.Evaluate(all[0]).Repair
		if r.State != tc.want {
			t.Errorf("%s, %d/%d: %s, want %s", tc.label, tc.unhealthy, tc.size, r.State, tc.want)
		}
		if r.State == RepairBlocked && (r.Unhealthy != tc.unhealthy || r.Total != tc.size || r.Percent != 20) {
			t.Errorf("%+v", r)
		}
	}
}

func TestAFaultInShadowModeIsSilenced(t *testing.T) {
	n := withHealth(t, node("a", cond("Ready", "True", ""), cond("KernelReady", "True", "")),
		annotation.Health{Findings: []annotation.Finding{{Reason: "X", Severity: "Fatal", Shadow: true, Since: now()}}})
	if r := evaluate(pooled(n, LabelNodePool)); r.Repair.State != RepairSilenced || r.Verdict != VerdictWarning {
		t.Errorf("%s, %s", r.Repair.State, r.Verdict)
	}
}

func TestPolicyFile(t *testing.T) {
	p, err := ParsePolicy([]byte(`apiVersion: health.ekslogs.io/v1alpha1
kind: RepairPolicy
repairers:
- name: ours
  maxUnhealthyPercent: 50
  silencedBy: [example.com/hands-off]
  rules:
  - {condition: KernelReady, status: "False", after: 5m}
`))
	if err != nil {
		t.Fatal(err)
	}
	sick := func(value string) *Facts {
		n := node("a", at(cond("KernelReady", "False", ""), time.Minute, 0))
		if value != "" {
			n.Annotations = map[string]string{"example.com/hands-off": value}
		}
		return FromNode(n, p.Keep())
	}
	well := FromNode(node("b"), p.Keep())
	v := View{Now: now(), Policy: p, Pools: CountPools(p, []*Facts{sick(""), well})}
	if r := v.Evaluate(sick("")).Repair; r.State != RepairPending || r.At.Sub(now()) != 4*time.Minute || r.By != "ours" {
		t.Errorf("%+v", r)
	}
	if r := v.Evaluate(sick("until monday")).Repair; r.State != RepairSilenced {
		t.Errorf("with the annotation: %s", r.State)
	}
	if r := v.Evaluate(sick("false")).Repair; r.State != RepairPending {
		t.Errorf("with the annotation false: %s", r.State)
	}
	for text, want := range map[string]string{
		"":                                "apiVersion",
		"apiVersion: [":                   "yaml",
		"apiVersion: v1\nkind: ConfigMap": "RepairPolicy",
		"apiVersion: health.ekslogs.io/v1alpha1\nkind: RepairPolicy\nrepairer: []":                                                                   "unknown field",
		"apiVersion: health.ekslogs.io/v1alpha1\nkind: RepairPolicy\nrepairers: [{rules: []}]":                                                       "no name",
		"apiVersion: health.ekslogs.io/v1alpha1\nkind: RepairPolicy\nrepairers: [{name: a, maxUnhealthyPercent: 101}]":                               "between 0 and 100",
		"apiVersion: health.ekslogs.io/v1alpha1\nkind: RepairPolicy\nrepairers: [{name: a, rules: [{condition: X, status: \"no\", after: 1m}]}]":     "in quotes",
		"apiVersion: health.ekslogs.io/v1alpha1\nkind: RepairPolicy\nrepairers: [{name: a, rules: [{condition: X, status: \"False\", after: -1m}]}]": "negative",
	} {
		if _, err := ParsePolicy([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
