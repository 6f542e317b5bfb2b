package board

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
)

func facts(name, kernel string, heartbeat time.Time) *fleet.Facts {
	c := func(kind, status string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status), LastHeartbeatTime: metav1.NewTime(heartbeat)}
	}
	return fleet.FromNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{c("Ready", "True"), c("KernelReady", kernel)}},
	}, fleet.Keep{})
}

func verdicts(s State) map[string]fleet.Verdict {
	out := map[string]fleet.Verdict{}
	for _, r := range s.Rows {
		out[r.Name] = r.Verdict
	}
	return out
}

func TestBoardFollowsWhatItIsTold(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	b := New(fleet.DefaultPolicy(), time.Hour)
	if s := b.At(now); s.Synced || len(s.Rows) != 0 {
		t.Errorf("before anything is told: %+v", s)
	}
	b.Replace([]*fleet.Facts{facts("a", "True", now), facts("b", "True", now)})
	if got := verdicts(b.At(now)); got["a"] != fleet.VerdictHealthy || got["b"] != fleet.VerdictHealthy {
		t.Errorf("at first: %v", got)
	}
	b.Set(facts("a", "False", now))
	b.SetEvent("e", fleet.Occurrence{Node: "b", Reason: "AppCrash", Severity: "Warning", First: now, Last: now})
	if got := verdicts(b.At(now)); got["a"] != fleet.VerdictSick || got["b"] != fleet.VerdictWarning {
		t.Errorf("after a fault and an Event: %v", got)
	}
	b.RemoveEvent("e")
	b.Remove("a")
	if got := verdicts(b.At(now)); len(got) != 1 || got["b"] != fleet.VerdictHealthy {
		t.Errorf("after both are gone: %v", got)
	}
	if got := verdicts(b.At(now.Add(time.Hour))); got["b"] != fleet.VerdictStale {
		t.Errorf("an hour later, with nobody telling: %v", got)
	}
	b.Replace(nil)
	if s := b.At(now); !s.Synced || len(s.Rows) != 0 {
		t.Errorf("with no nodes: %+v", s)
	}
}

func BenchmarkRedrawAfterFiftyUpdates(bm *testing.B) {
	now := time.Now()
	b := New(fleet.DefaultPolicy(), time.Hour)
	var all []*fleet.Facts
	for i := range 5000 {
		all = append(all, facts(time.Duration(i).String(), "True", now))
	}
	b.Replace(all)
	b.At(now)
	for bm.Loop() {
		for i := range 50 {
			b.Set(all[i])
		}
		s := b.At(now)
		fleet.Sort(s.Rows, fleet.BySeverity)
		fleet.Shares(s.Rows)
	}
}
