package publish

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
)

// stage is a source that a test plays.
type stage struct {
	mu        sync.Mutex
	d         Desired
	adopted   [][]ledger.NodeCondition
	allClears []string
	rivals    []string
}

func (s *stage) Desired() Desired {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.d
	d.Conditions = slices.Clone(d.Conditions)
	return d
}

func (s *stage) Adopt(c []ledger.NodeCondition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adopted = append(s.adopted, c)
}

func (s *stage) AllClear(value, by string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allClears = append(s.allClears, value)
}

func (s *stage) Rival(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rivals = append(s.rivals, name)
}

func (s *stage) Published(time.Duration, error) {}

func (s *stage) set(p *Publisher, d Desired) {
	for _, c := range d.Conditions {
		d.On = append(d.On, c.Type)
	}
	s.mu.Lock()
	s.d = d
	s.mu.Unlock()
	p.Wake()
}

func since(minute int) time.Time { return time.Date(2026, 3, 1, 10, minute, 0, 0, time.UTC) }

func condition(t health.ConditionType, healthy bool, reason string, minute int) ledger.Condition {
	return ledger.Condition{Type: t, Healthy: healthy, Reason: reason, Message: "words", Since: since(minute)}
}

func startPublisher(t *testing.T, f *fakeAPI, s *stage, change func(*Publisher)) *Publisher {
	t.Helper()
	p := New(Options{Node: "n", Core: f.client(""), Source: s, Instance: "one", Log: slog.New(slog.DiscardHandler)})
	p.pace.retry, p.pace.retryMax, p.pace.restore, p.pace.annotation = time.Millisecond, 10*time.Millisecond, 50*time.Millisecond, time.Millisecond
	if change != nil {
		change(p)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	t.Cleanup(func() { cancel(); f.srv.CloseClientConnections(); <-done })
	return p
}

func TestOnlyOurConditionsAreWrittenAndOthersStay(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, nil)
	s.set(p, Desired{
		Conditions: []ledger.Condition{condition("KernelReady", true, "KernelIsReady", 1), condition("StorageReady", false, "FilesystemReadOnly", 2)},
		Health:     annotation.Health{Findings: []annotation.Finding{{Reason: "FilesystemReadOnly"}}},
	})
	f.until("both are there, and Ready still is", func() bool {
		k, st, r := f.get("KernelReady"), f.get("StorageReady"), f.get("Ready")
		return k != nil && k.Status == "True" && st != nil && st.Status == "False" && st.LastTransitionTime.Time.Equal(since(2)) && r != nil
	})
	f.until("one write for both and the annotation", func() bool {
		return len(f.patches) >= 1 && strings.Contains(f.node.Annotations[annotation.Key], "FilesystemReadOnly")
	})
	f.mu.Lock()
	for _, patch := range f.patches {
		if strings.Contains(patch, `"Ready"`) {
			t.Errorf("it wrote the kubelet's condition: %s", patch)
		}
	}
	f.mu.Unlock()
}

func TestTheNodeIsAdoptedOnceBeforeTheFirstWrite(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	f.change(func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: "StorageReady", Status: "False", Reason: "FilesystemReadOnly", Message: "words [MonitorBlind: cannot read kmsg]"})
	})
	p := startPublisher(t, f, s, nil)
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", true, "KernelIsReady", 1)}})
	f.until("written", func() bool { return f.get("KernelReady") != nil })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.adopted) != 1 || len(s.adopted[0]) != 1 || s.adopted[0][0].Reason != "FilesystemReadOnly" || s.adopted[0][0].Message != "words" {
		t.Errorf("adopted %+v", s.adopted)
	}
}

func TestAnOutageDelaysAndLosesNothing(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, nil)
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", true, "KernelIsReady", 1)}})
	f.until("healthy", func() bool { return f.get("KernelReady") != nil })
	f.setDown(true)
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", false, "ForkFailedOutOfPIDs", 5)}})
	time.Sleep(50 * time.Millisecond)
	f.setDown(false)
	f.until("the fault arrives with its own time", func() bool {
		c := f.get("KernelReady")
		return c.Status == "False" && c.Reason == "ForkFailedOutOfPIDs" && c.LastTransitionTime.Time.Equal(since(5))
	})
}

// drop is what a JSON merge patch with a list of its own does.
func drop(n *corev1.Node) {
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type != "Ready" })
}

func TestDroppedAndOverwrittenConditionsComeBackWithTheirTime(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, nil)
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", false, "ForkFailedOutOfPIDs", 5)}})
	f.until("written", func() bool { return f.get("KernelReady") != nil })
	f.change(drop)
	f.until("back", func() bool {
		c := f.get("KernelReady")
		return c != nil && c.LastTransitionTime.Time.Equal(since(5)) && f.get("Ready") != nil
	})
	f.change(func(n *corev1.Node) { f.node = n; f.get("KernelReady").Status = "True" })
	f.until("put right", func() bool { return f.get("KernelReady").Status == "False" })
}

func TestARecreatedNodeGetsItsConditionsWithTheirTime(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, nil)
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", false, "ForkFailedOutOfPIDs", 5)}})
	f.until("written", func() bool { return f.get("KernelReady") != nil })
	f.change(func(n *corev1.Node) {
		n.UID, n.Annotations, n.ManagedFields = "uid-2", nil, nil
		drop(n)
	})
	f.until("back", func() bool {
		c := f.get("KernelReady")
		return c != nil && c.LastTransitionTime.Time.Equal(since(5)) && f.node.Annotations[annotation.Key] != ""
	})
	if p.UID() != "uid-2" {
		t.Errorf("uid %s", p.UID())
	}
}

func TestHeartbeatsComeFromLivingSourcesOnly(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, func(p *Publisher) { p.pace.heartbeat = 1100 * time.Millisecond })
	blind := condition("StorageReady", true, "StorageIsReady", 1)
	blind.Blind = []string{"kmsg"}
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", true, "KernelIsReady", 1), blind}})
	f.until("written", func() bool { return f.get("KernelReady") != nil && f.get("StorageReady") != nil })
	f.mu.Lock()
	kernel, storage := f.get("KernelReady").LastHeartbeatTime, f.get("StorageReady").LastHeartbeatTime
	f.mu.Unlock()
	f.until("the living one beats", func() bool { return f.get("KernelReady").LastHeartbeatTime.After(kernel.Time) })
	f.mu.Lock()
	defer f.mu.Unlock()
	if got := f.get("StorageReady").LastHeartbeatTime; !got.Time.Equal(storage.Time) {
		t.Errorf("the blind condition's heartbeat moved from %s to %s", storage, got)
	}
	if n := len(f.patches); n > 6 {
		t.Errorf("%d writes for one heartbeat", n)
	}
}

func TestMonitorsThatAreOffLoseOurConditionOnly(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, nil)
	both := []ledger.Condition{condition("KernelReady", true, "KernelIsReady", 1), condition("StorageReady", true, "StorageIsReady", 1)}
	s.set(p, Desired{Conditions: both})
	f.until("written", func() bool { return f.get("StorageReady") != nil })
	f.change(func(n *corev1.Node) { // somebody else's, of a type that we have turned off as well
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "AcceleratedHardwareReady", Status: "True"})
	})
	s.set(p, Desired{Conditions: both[:1], Off: []health.ConditionType{"StorageReady", "AcceleratedHardwareReady"}})
	f.until("removed", func() bool { return f.get("StorageReady") == nil })
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.get("AcceleratedHardwareReady") == nil || f.get("Ready") == nil || f.get("KernelReady") == nil {
		t.Errorf("a condition that is not ours was removed: %+v", f.node.Status.Conditions)
	}
}

const rivalPatch = `{"status":{"conditions":[{"type":"KernelReady","status":"True","reason":"KernelIsReady","message":"theirs %d","lastHeartbeatTime":"2026-03-01T10:%02d:00Z"}]}}`

func TestAnotherAgentSendsUsToStandby(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, nil)
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", true, "KernelIsReady", 1)}})
	f.until("written", func() bool { return f.get("KernelReady") != nil })
	f.mu.Lock()
	if err := f.apply(fmt.Appendf(nil, rivalPatch, 1, 1), "eks-node-monitoring-agent"); err != nil {
		t.Fatal(err)
	}
	f.mu.Unlock()
	f.until("the annotation says who is in charge", func() bool {
		h, err := annotation.Decode(f.node.Annotations[annotation.Key])
		return err == nil && h.Standby == "eks-node-monitoring-agent"
	})
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", false, "ForkFailedOutOfPIDs", 9)}})
	time.Sleep(100 * time.Millisecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.get("KernelReady"); c.Message != "theirs 1" {
		t.Errorf("we fought: %+v", c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.rivals, []string{"eks-node-monitoring-agent"}) {
		t.Errorf("told of rivals %q", s.rivals)
	}
}

func TestTakeoverInsists(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, func(p *Publisher) { p.opts.Takeover = true })
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", true, "KernelIsReady", 1)}})
	f.until("written", func() bool { return f.get("KernelReady") != nil })
	f.mu.Lock()
	f.apply(fmt.Appendf(nil, rivalPatch, 1, 1), "eks-node-monitoring-agent")
	f.mu.Unlock()
	f.until("ours again", func() bool { return f.get("KernelReady").Message == "words" })
}

func TestWhatAPersonWritesIsPutRightAndNoReasonToStandBack(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, nil)
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", true, "KernelIsReady", 1)}})
	f.until("written", func() bool { return f.get("KernelReady") != nil })
	f.mu.Lock()
	f.apply(fmt.Appendf(nil, rivalPatch, 1, 1), "kubectl-edit")
	f.mu.Unlock()
	f.until("ours again", func() bool { return f.get("KernelReady").Message == "words" })
}

func TestASilentRivalIsGone(t *testing.T) {
	p := New(Options{Source: &stage{}, Instance: "one", Log: slog.New(slog.DiscardHandler)})
	p.own = true
	now := time.Now()
	s := &snapshot{writers: map[health.ConditionType]writer{"KernelReady": {"other", now}}}
	types := []health.ConditionType{"KernelReady"}
	if got := p.standby(s, types, now); got != "other" {
		t.Fatalf("standby for %q", got)
	}
	if got := p.standby(s, types, now.Add(gone-time.Second)); got != "other" {
		t.Errorf("took over early")
	}
	if got := p.standby(s, types, now.Add(gone+time.Second)); got != "" {
		t.Errorf("still waits for %q", got)
	}
	if got := p.standby(s, types, now.Add(gone+time.Minute)); got != "" {
		t.Errorf("stands back again for one that is silent: %q", got)
	}
	s.writers["KernelReady"] = writer{"other", now.Add(gone + 2*time.Minute)}
	if got := p.standby(s, types, now.Add(gone+2*time.Minute)); got != "other" {
		t.Errorf("does not notice that it is back: %q", got)
	}
}

func TestOldTracesOfAnotherAgentAreNoReasonToWait(t *testing.T) {
	p := New(Options{Source: &stage{}, Instance: "two", Log: slog.New(slog.DiscardHandler)})
	now := time.Now()
	types := []health.ConditionType{"KernelReady"}
	old := &snapshot{writers: map[health.ConditionType]writer{"KernelReady": {"other", now.Add(-time.Hour)}}}
	if got := p.standby(old, types, now); got != "" {
		t.Errorf("waits for %q, which was last heard of an hour ago", got)
	}
	ours := &snapshot{instance: "one", writers: map[health.ConditionType]writer{"KernelReady": {Manager, now}}}
	if got := p.standby(ours, types, now); got != "" {
		t.Errorf("waits for %q, which is what this agent was before its restart", got)
	}
	p.own, p.applied.wrote = true, map[health.ConditionType]time.Time{"KernelReady": now}
	if got := p.standby(ours, types, now); got == "" {
		t.Error("does not notice an agent of its kind that started later")
	}
}

func TestAnAllClearIsPassedOnOnceAndRemoved(t *testing.T) {
	f, s := newFakeAPI(t), &stage{}
	p := startPublisher(t, f, s, nil)
	s.set(p, Desired{Conditions: []ledger.Condition{condition("KernelReady", true, "KernelIsReady", 1)}})
	f.until("written", func() bool { return f.get("KernelReady") != nil })
	f.change(func(n *corev1.Node) { n.Annotations[annotation.AllClearKey] = "NvidiaRowRemapFailure/GPU-1" })
	f.until("removed", func() bool { _, ok := f.node.Annotations[annotation.AllClearKey]; return !ok })
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.allClears, []string{"NvidiaRowRemapFailure/GPU-1"}) {
		t.Errorf("all-clears %q", s.allClears)
	}
}

func TestOnANodeWithoutManagersHeartbeatsTellAgentsApart(t *testing.T) {
	types := []health.ConditionType{"KernelReady"}
	now := since(30)
	with := func(heartbeat time.Time, note string) *snapshot {
		n := &corev1.Node{}
		n.Status.Conditions = []corev1.NodeCondition{{Type: "KernelReady", Status: "True", Reason: "KernelIsReady", LastHeartbeatTime: metav1.NewTime(heartbeat)}}
		if note != "" {
			n.Annotations = map[string]string{annotation.Key: note}
		}
		return takeSnapshot(n)
	}
	const ours, theirs = `{"version":"v1","monitors":[{"name":"kernel","condition":"KernelReady","state":"on"}]}`, `{"version":"v1","standby":"x"}`
	wrote := map[health.ConditionType]time.Time{"KernelReady": now}
	for _, c := range []struct {
		name  string
		s     *snapshot
		wrote map[health.ConditionType]time.Time
		rival bool
	}{
		{"at the start, a foreign agent's conditions", with(now, ""), nil, true},
		{"at the start, our own", with(now, ours), nil, false},
		{"at the start, we stood by before", with(now, theirs), nil, true},
		{"running, as we wrote it", with(now, ours), wrote, false},
		{"running, a newer heartbeat", with(now.Add(time.Minute), ours), wrote, true},
		{"running, an edit that keeps the heartbeat", with(now, ours), wrote, false},
	} {
		if name, _ := findRival(c.s, types, "me", c.wrote); (name != "") != c.rival {
			t.Errorf("%s: rival %q", c.name, name)
		}
	}
	if got := removable(with(now, ours), types); len(got) != 1 {
		t.Error("a condition that the annotation calls ours is not removed")
	}
	if got := removable(with(now, ""), types); len(got) != 0 {
		t.Error("a condition of somebody else would be removed")
	}
}
