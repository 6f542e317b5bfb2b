package fleet

import (
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

func now() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now().Add(-d)) }

// cond is a condition that changed an hour ago and was evaluated a minute ago.
func cond(kind, status, reason string) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status), Reason: reason,
		LastTransitionTime: ago(time.Hour), LastHeartbeatTime: ago(time.Minute),
	}
}

func at(c corev1.NodeCondition, since, heartbeat time.Duration) corev1.NodeCondition {
	c.LastTransitionTime, c.LastHeartbeatTime = ago(since), ago(heartbeat)
	return c
}

func node(name string, conditions ...corev1.NodeCondition) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: conditions}}
}

func evaluate(n *corev1.Node) *Row {
	p := DefaultPolicy()
	f := FromNode(n, p.Keep())
	v := View{Now: now(), Policy: p, Pools: CountPools(p, []*Facts{f}), Window: time.Hour, HaveEvents: true}
	return v.Evaluate(f)
}

func withHealth(t *testing.T, n *corev1.Node, h annotation.Health) *corev1.Node {
	t.Helper()
	value, err := annotation.Encode(h)
	if err != nil {
		t.Fatal(err)
	}
	n.Annotations = map[string]string{annotation.Key: value}
	return n
}

func TestVerdictAndCells(t *testing.T) {
	ready := cond("Ready", "True", "KubeletReady")
	kernel := cond("KernelReady", "True", "KernelIsReady")
	for _, tc := range []struct {
		name       string
		conditions []corev1.NodeCondition
		verdict    Verdict
		kernel     State
		ready      State
		reason     string
	}{
		{"all well", []corev1.NodeCondition{ready, kernel}, VerdictHealthy, Healthy, Healthy, ""},
		{"no agent is not health", []corev1.NodeCondition{ready}, VerdictUnmonitored, Absent, Healthy, ""},
		{"no condition at all", nil, VerdictStale, Absent, Absent, ""},
		{"a condition is False", []corev1.NodeCondition{ready, cond("KernelReady", "False", "ForkFailedOutOfPIDs")}, VerdictSick, Sick, Healthy, "ForkFailedOutOfPIDs"},
		{"False stays False when its writer falls silent", []corev1.NodeCondition{ready, at(cond("KernelReady", "False", "X"), time.Hour, time.Hour)}, VerdictSick, Sick, Healthy, "X"},
		{"heartbeat of eleven minutes is fresh", []corev1.NodeCondition{ready, at(kernel, time.Hour, 11*time.Minute)}, VerdictHealthy, Healthy, Healthy, ""},
		{"an older heartbeat is stale", []corev1.NodeCondition{ready, at(kernel, time.Hour, 11*time.Minute+time.Second)}, VerdictStale, Stale, Healthy, ""},
		{"a heartbeat that was never given is stale", []corev1.NodeCondition{ready, {Type: "KernelReady", Status: "True"}}, VerdictStale, Stale, Healthy, "no heartbeat"},
		{"Unknown is stale", []corev1.NodeCondition{ready, cond("KernelReady", "Unknown", "Hm")}, VerdictStale, Stale, Healthy, "Hm"},
		{"a status that nobody knows is stale", []corev1.NodeCondition{ready, cond("KernelReady", "Maybe", "Hm")}, VerdictStale, Stale, Healthy, "Hm"},
		{"the kubelet is not ready", []corev1.NodeCondition{cond("Ready", "False", "KubeletNotReady"), kernel}, VerdictSick, Healthy, Sick, "KubeletNotReady"},
		{"the kubelet is gone", []corev1.NodeCondition{cond("Ready", "Unknown", "NodeStatusUnknown"), kernel}, VerdictStale, Healthy, Stale, "NodeStatusUnknown"},
		{"pressure counts", []corev1.NodeCondition{ready, kernel, cond("DiskPressure", "True", "KubeletHasDiskPressure")}, VerdictSick, Healthy, Sick, "DiskPressure"},
		{"no pressure", []corev1.NodeCondition{ready, kernel, cond("DiskPressure", "False", "KubeletHasNoDiskPressure")}, VerdictHealthy, Healthy, Healthy, ""},
		{"the clock of the client is behind", []corev1.NodeCondition{ready, at(kernel, -time.Hour, -time.Hour)}, VerdictHealthy, Healthy, Healthy, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := evaluate(node("a", tc.conditions...))
			if r.Verdict != tc.verdict || r.Cells[Kernel].State != tc.kernel || r.Cells[Ready].State != tc.ready || r.Reason != tc.reason {
				t.Errorf("%s, kernel %s, ready %s, reason %q; want %s, %s, %s, %q", r.Verdict, r.Cells[Kernel].State,
					r.Cells[Ready].State, r.Reason, tc.verdict, tc.kernel, tc.ready, tc.reason)
			}
			if r.Cells[Storage].State != Absent {
				t.Errorf("storage, which nobody watches, is %s", r.Cells[Storage].State)
			}
		})
	}
}

func TestSinceIsThatOfTheCause(t *testing.T) {
	ready := cond("Ready", "True", "KubeletReady")
	r := evaluate(node("a", ready, at(cond("KernelReady", "False", "Second"), 5*time.Minute, 0), at(cond("StorageReady", "False", "First"), 20*time.Minute, 0)))
	if got := now().Sub(r.Since); got != 20*time.Minute || r.Reason != "First" {
		t.Errorf("sick since %s with %s", got, r.Reason)
	}
	r = evaluate(node("a", ready, at(cond("KernelReady", "True", "Ok"), 9*time.Hour, 40*time.Minute)))
	if got := now().Sub(r.Since); got != 40*time.Minute {
		t.Errorf("stale since %s: the last heartbeat counts", got)
	}
	r = evaluate(node("a", ready, at(cond("KernelReady", "True", "Ok"), 3*time.Minute, 0)))
	if got := now().Sub(r.Since); got != 3*time.Minute {
		t.Errorf("healthy since %s: the last recovery counts", got)
	}
}

func TestABlindMonitorIsStaleAtOnce(t *testing.T) {
	h := annotation.Health{AgentVersion: "v1", Monitors: []annotation.Monitor{{Name: "kernel", Condition: "KernelReady", State: annotation.MonitorBlind, Since: now()}}}
	n := withHealth(t, node("a", cond("Ready", "True", ""), cond("KernelReady", "True", "")), h)
	if r := evaluate(n); r.Verdict != VerdictStale || r.Cells[Kernel].Reason != "blind" {
		t.Errorf("%s, %+v", r.Verdict, r.Cells[Kernel])
	}
	h.Standby = "eks-node-monitoring-agent"
	n = withHealth(t, n, h)
	if r := evaluate(n); r.Verdict != VerdictHealthy || r.Agent != "ekslogs v1 (standby)" {
		t.Errorf("on standby another agent writes the conditions: %s by %s", r.Verdict, r.Agent)
	}
}

func TestAgent(t *testing.T) {
	kernel := cond("KernelReady", "True", "")
	theirs := node("a", kernel)
	theirs.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "eks-node-monitoring-agent"}}
	broken := node("a", kernel)
	broken.Annotations = map[string]string{annotation.Key: "{"}
	for name, tc := range map[string]struct {
		node *corev1.Node
		want string
	}{
		"ours":    {withHealth(t, node("a"), annotation.Health{AgentVersion: "v1.2.3"}), "ekslogs v1.2.3"},
		"the EKS": {theirs, "eks"},
		"another": {node("a", kernel), "other"},
		"none":    {node("a", cond("Ready", "True", "")), ""},
		"broken":  {broken, "ekslogs (unreadable)"},
	} {
		if got := evaluate(tc.node).Agent; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	if f := FromNode(broken, Keep{}); f.HealthError == "" {
		t.Error("a broken annotation is not told of")
	}
}

func TestGPUs(t *testing.T) {
	n := node("a")
	n.Status.Capacity = corev1.ResourceList{resourceNvidiaGPUs: resource.MustParse("8")}
	n.Status.Allocatable = corev1.ResourceList{resourceNvidiaGPUs: resource.MustParse("7")}
	if got := evaluate(n).GPUs; got != (GPUs{7, 8}) {
		t.Errorf("by the device plugin: %+v", got)
	}
	n = withHealth(t, n, annotation.Health{GPUs: []annotation.GPU{{PCI: "0", Verdict: annotation.VerdictReset}, {PCI: "1", Verdict: annotation.VerdictReplace}}})
	if got := evaluate(n).GPUs; got != (GPUs{6, 8}) {
		t.Errorf("by verdicts, with those left out that are ok: %+v", got)
	}
}

func TestWarnings(t *testing.T) {
	ready, kernel := cond("Ready", "True", ""), cond("KernelReady", "False", "KernelBug")
	old := now().Add(-2 * time.Hour)
	recent := now().Add(-time.Minute)
	n := withHealth(t, node("a", ready, kernel), annotation.Health{
		Findings: []annotation.Finding{{Reason: "AppCrash", Severity: "Warning", Since: old}},
		Incidents: []annotation.Incident{
			{Reason: "AppBlocked", Severity: "Warning", From: old, Last: recent, Count: 3},
			{Reason: "RapidCron", Severity: "Warning", From: old, Last: old, Count: 1},
			{Reason: "KernelBug", Severity: "Warning", From: old, Last: recent, Count: 1},
		},
	})
	var got []string
	for _, w := range evaluate(n).Warnings {
		got = append(got, w.Reason)
	}
	if want := "AppBlocked AppCrash"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q: active ones and those in the window, without what turned the condition", got, want)
	}
}

func TestHostileNodeIsBoundedAndClean(t *testing.T) {
	n := node("a")
	for range 200 {
		n.Status.Conditions = append(n.Status.Conditions, cond("Noise\x1b[2J", "True", "x"))
	}
	bad := cond("KernelReady", "False", "Evil\x1b[31m\u202e")
	bad.Message = strings.Repeat("\x1b]0;pwned\x07A", 1<<17)
	n.Status.Conditions = append(n.Status.Conditions, bad)
	n.Annotations = map[string]string{annotation.Key: strings.Repeat("x", 1<<20)}
	r := evaluate(n)
	if r.Verdict != VerdictSick {
		t.Errorf("the verdict is lost among 200 conditions: %s", r.Verdict)
	}
	if len(r.Conditions) != maxConditions || r.More != 201-maxConditions {
		t.Errorf("%d conditions and %d more", len(r.Conditions), r.More)
	}
	if len(r.Message) > maxMessage+8 || strings.ContainsAny(r.Message+r.Reason, "\x1b\x07\u202e") {
		t.Errorf("message of %d bytes, reason %q", len(r.Message), r.Reason)
	}
	if r.HealthError == "" {
		t.Error("an annotation of a megabyte is not told of")
	}
}

func TestFisherAgreesWithTheTextbook(t *testing.T) {
	for _, tc := range []struct {
		hits, marked, having, total int
		want                        float64
	}{
		{3, 4, 4, 8, 17.0 / 70},     // the lady tasting tea
		{5, 5, 5, 40, 1.0 / 658008}, // C(40,5)
		{0, 5, 5, 40, 1},            // at least none
		{4, 3, 5, 40, 1},            // impossible
		{10, 10, 40, 40, 1},         // a trait of all nodes
		{3, 3, 3, 5000, 1.0 / 20820835000},
	} {
		if got := Fisher(tc.hits, tc.marked, tc.having, tc.total); math.Abs(got-tc.want) > 1e-6*tc.want {
			t.Errorf("Fisher(%d, %d, %d, %d) = %g, want %g", tc.hits, tc.marked, tc.having, tc.total, got, tc.want)
		}
	}
}

func TestSharesTellWhatIsBeyondChance(t *testing.T) {
	var rows []*Row
	for i := range 40 {
		n := node(string(rune('a'+i%26))+strings.Repeat("x", i/26), cond("Ready", "True", ""), cond("KernelReady", "True", ""))
		n.Labels = map[string]string{LabelKarpenterAMI: "ami-good", LabelZone: "z1"}
		if i < 5 {
			n.Labels[LabelKarpenterAMI] = "ami-bad"
			n.Status.Conditions[1] = cond("KernelReady", "False", "NvidiaXID79Error")
		}
		if i >= 5 && i < 7 {
			n.Status.Conditions[1] = cond("KernelReady", "False", "OnTwoNodesOnly")
		}
		rows = append(rows, evaluate(n))
	}
	got := Shares(rows)
	if len(got) != 1 {
		t.Fatalf("%d shares: %+v", len(got), got)
	}
	want := Share{"NvidiaXID79Error", "AMI", "ami-bad", 5, 5, 5, 40, got[0].P}
	if got[0] != want || got[0].P > 1e-5 {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
}

func TestExitCodes(t *testing.T) {
	for _, tc := range []struct {
		totals Totals
		want   int
	}{
		{Totals{Healthy: 3}, 0},
		{Totals{Healthy: 3, Warning: 1}, 2},
		{Totals{Warning: 1, Unmonitored: 1}, 4},
		{Totals{Stale: 1}, 4},
		{Totals{Stale: 1, Sick: 1}, 3},
	} {
		if got := tc.totals.ExitCode(); got != tc.want {
			t.Errorf("%+v: %d, want %d", tc.totals, got, tc.want)
		}
	}
}

func TestSort(t *testing.T) {
	ready := cond("Ready", "True", "")
	rows := []*Row{
		evaluate(node("healthy", ready, at(cond("KernelReady", "True", ""), 3*time.Hour, 0))),
		evaluate(node("sick-new", ready, at(cond("KernelReady", "False", ""), time.Minute, 0))),
		evaluate(node("stale", ready, at(cond("KernelReady", "True", ""), time.Hour, 30*time.Minute))),
		evaluate(node("sick-old", ready, at(cond("KernelReady", "False", ""), time.Hour, 0))),
	}
	for order, want := range map[Order]string{
		ByName:      "healthy sick-new sick-old stale",
		BySeverity:  "sick-old sick-new stale healthy",
		BySince:     "sick-new stale healthy sick-old",
		ByHeartbeat: "stale healthy sick-new sick-old",
	} {
		Sort(rows, order)
		var names []string
		for _, r := range rows {
			names = append(names, r.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", order, got, want)
		}
	}
}
