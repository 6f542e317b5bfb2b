package monitor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

type fakeCheck struct {
	name     string
	reasons  []string
	interval time.Duration
	run      func(context.Context) ([]health.Finding, error)
}

func (c fakeCheck) Name() string                    { return c.name }
func (c fakeCheck) Condition() health.ConditionType { return health.KernelReady }
func (c fakeCheck) Reasons() []string               { return c.reasons }
func (c fakeCheck) Interval() time.Duration         { return c.interval }
func (c fakeCheck) Run(ctx context.Context, _ *host.Host) ([]health.Finding, error) {
	return c.run(ctx)
}

// notes is what a scheduler reports.
type notes struct {
	mu    sync.Mutex
	runs  []string
	errs  map[string]error
	round chan struct{}
}

func newNotes() *notes { return &notes{errs: map[string]error{}, round: make(chan struct{})} }

func (n *notes) checked(c check.Check, _ []health.Finding, _ time.Duration, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs = append(n.runs, c.Name())
	n.errs[c.Name()] = err
}

func (n *notes) firstRound() { close(n.round) }

func clean(context.Context) ([]health.Finding, error) { return nil, nil }

func ownInterval(c check.Check) time.Duration { return c.Interval() }

func TestEveryCheckRunsAndLoopbackGoesFirst(t *testing.T) {
	n := newNotes()
	start := time.Now()
	s := newScheduler(nil, "n", []check.Check{
		fakeCheck{name: "a", interval: time.Millisecond, run: clean},
		fakeCheck{name: "panics", interval: time.Millisecond, run: func(context.Context) ([]health.Finding, error) { panic("boom") }},
		fakeCheck{name: "lo", reasons: []string{"MissingLoopbackInterface"}, interval: time.Hour, run: clean},
	}, ownInterval, n, slog.New(slog.DiscardHandler), start)
	if !s.jobs[2].next.Equal(start) {
		t.Errorf("the loopback interface is looked at %s after the start", s.jobs[2].next.Sub(start))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.run(ctx) }()
	select {
	case <-n.round:
	case <-time.After(20 * time.Second):
		t.Error("no first round")
	}
	cancel()
	<-done
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.errs) != 3 || n.errs["a"] != nil || n.errs["panics"] == nil {
		t.Errorf("%v", n.errs)
	}
}

func TestAHungCheckHoldsUpNobodyAndDoesNotPileUp(t *testing.T) {
	n := newNotes()
	release := make(chan struct{})
	var mu sync.Mutex
	started := 0
	hangs := fakeCheck{name: "hangs", interval: time.Millisecond, run: func(context.Context) ([]health.Finding, error) {
		mu.Lock()
		started++
		mu.Unlock()
		<-release
		return nil, nil
	}}
	s := newScheduler(nil, "n", []check.Check{hangs, fakeCheck{name: "a", interval: time.Millisecond, run: clean}}, ownInterval, n, slog.New(slog.DiscardHandler), time.Now())
	s.hung = time.Millisecond
	for range 5 {
		for _, j := range s.jobs {
			s.runJob(t.Context(), j)
		}
	}
	n.mu.Lock()
	if len(n.runs) != 10 || n.errs["hangs"] == nil || n.errs["a"] != nil {
		t.Errorf("%v %v", n.runs, n.errs)
	}
	n.mu.Unlock()
	mu.Lock()
	if started != 1 {
		t.Errorf("%d runs hang at once", started)
	}
	mu.Unlock()
	close(release)
	s.hung = 20 * time.Second
	s.runJob(t.Context(), s.jobs[0])
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.errs["hangs"] != nil {
		t.Errorf("it has returned and is still called hung: %v", n.errs["hangs"])
	}
}

func TestJitterIsTheSameEachTimeAndWithinItsLimit(t *testing.T) {
	seen := map[time.Duration]bool{}
	for _, node := range []string{"a", "b", "c", "d"} {
		j := jitter(node, "zombies", time.Minute)
		if j < 0 || j >= time.Minute || j != jitter(node, "zombies", time.Minute) {
			t.Errorf("%s: %s", node, j)
		}
		seen[j] = true
	}
	if len(seen) < 3 {
		t.Error("all nodes run at the same time")
	}
	if jitter("a", "b", 0) != 0 {
		t.Error("jitter without room")
	}
}

func TestACheckThatFailsIsBlindAfterThreeRunsAndOneWithoutDataNever(t *testing.T) {
	m := newTestMonitor(t, t.TempDir(), nil)
	c := fakeCheck{name: "zombies", reasons: []string{"ExcessiveZombieProcesses"}}
	for range 10 {
		m.checked(c, nil, 0, check.ErrNoData)
	}
	m.checked(c, nil, 0, errors.New("no"))
	m.checked(c, nil, 0, errors.New("no"))
	if got := m.findings(); got != "" {
		t.Errorf("told early: %s", got)
	}
	m.checked(c, nil, 0, errors.New("no"))
	m.checked(c, nil, 0, errors.New("no"))
	if got := m.findings(); got != "MonitorBlind/check zombies" {
		t.Errorf("findings %q", got)
	}
	m.checked(c, nil, 0, nil)
	if got := m.findings(); got != "" {
		t.Errorf("still blind: %s", got)
	}
}
