package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
)

// box is an outbox in memory.
type box struct {
	mu sync.Mutex
	n  []ledger.Notice
}

func (b *box) Pending() []ledger.Notice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.n)
}

func (b *box) Delivered(n ledger.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n = slices.DeleteFunc(b.n, func(o ledger.Notice) bool { return o.Key == n.Key && o.Kind == n.Kind && o.Count <= n.Count })
}

func (b *box) put(n ledger.Notice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n = append(b.n, n)
}

func notice(key string, count int) ledger.Notice {
	return ledger.Notice{
		Key: key, Kind: ledger.Detected, Condition: "KernelReady", Reason: "KernelOops", Subject: "cpu3", Severity: health.Warning,
		Message: "the kernel oopsed", First: since(1), Last: since(2), Count: count, Created: since(2),
	}
}

func startEvents(t *testing.T, f *fakeAPI, b *box, style Style) *EventWriter {
	t.Helper()
	w := NewEventWriter(EventOptions{
		Node: "n", UID: func() string { return "uid-1" }, Boot: "boot", Client: f.client(style), Style: style,
		Instance: "pod-1", Outbox: b, Log: slog.New(slog.DiscardHandler),
	})
	w.retry = time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

func (f *fakeAPI) only() *eventsv1.Event {
	for _, e := range f.events {
		return e
	}
	return nil
}

func TestAnEventSaysWhatWhereAndWho(t *testing.T) {
	f, b := newFakeAPI(t), &box{}
	w := startEvents(t, f, b, StyleOurs)
	b.put(notice("kmsg/boot/1", 1))
	w.Wake()
	f.until("posted", func() bool { return len(f.events) == 1 })
	e := f.only()
	if e.Regarding.Kind != "Node" || e.Regarding.Name != "n" || e.Regarding.UID != "uid-1" || e.Reason != "KernelOops" ||
		e.Note != "cpu3: the kernel oopsed" || e.Action != "Detected" || e.Type != "Warning" || e.ReportingInstance != "pod-1" ||
		e.Series != nil || !e.EventTime.Time.Equal(since(1)) || e.Namespace != "default" {
		t.Errorf("%+v", e)
	}
}

func TestAnEventThatIsThereAlreadyIsDone(t *testing.T) {
	f, b := newFakeAPI(t), &box{}
	w := startEvents(t, f, b, StyleOurs)
	for range 3 { // as after crashes before the delivery was noted
		b.put(notice("kmsg/boot/1", 1))
		w.Wake()
		f.until("delivered", func() bool { return len(b.Pending()) == 0 })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.events) != 1 || f.posts != 3 {
		t.Errorf("%d events by %d posts", len(f.events), f.posts)
	}
}

func TestACountUpdatesTheSeriesOfTheSameEvent(t *testing.T) {
	f, b := newFakeAPI(t), &box{}
	w := startEvents(t, f, b, StyleOurs)
	for _, count := range []int{1, 2, 10} {
		b.put(notice("kmsg/boot/1", count))
		w.Wake()
		f.until("delivered", func() bool { return len(b.Pending()) == 0 })
	}
	f.mu.Lock()
	if e := f.only(); len(f.events) != 1 || e.Series == nil || e.Series.Count != 10 || !e.Series.LastObservedTime.Time.Equal(since(2)) {
		t.Errorf("%d events, %+v", len(f.events), e)
	}
	clear(f.events) // the API server forgets events after an hour
	f.mu.Unlock()
	b.put(notice("kmsg/boot/1", 100))
	w.Wake()
	f.until("made anew", func() bool { return len(f.events) == 1 && f.only().Series.Count == 100 })
}

func TestAnOutageDelaysEvents(t *testing.T) {
	f, b := newFakeAPI(t), &box{}
	f.setDown(true)
	w := startEvents(t, f, b, StyleOurs)
	b.put(notice("a", 1))
	b.put(notice("b", 1))
	w.Wake()
	time.Sleep(30 * time.Millisecond)
	if len(b.Pending()) != 2 {
		t.Fatal("dropped while the API server was down")
	}
	f.setDown(false)
	f.until("both arrive", func() bool { return len(f.events) == 2 })
}

func TestAStormIsSummedUpInOneEvent(t *testing.T) {
	f, b := newFakeAPI(t), &box{}
	for i := range 300 {
		b.put(notice(fmt.Sprint(i), 1))
	}
	fatal := notice("fatal", 1)
	fatal.Severity, fatal.Reason = health.Fatal, "ForkFailedOutOfPIDs"
	b.put(fatal)
	w := startEvents(t, f, b, StyleOurs)
	f.until("the burst", func() bool { return len(f.events) == 25 })
	f.mu.Lock()
	if f.posts != 25 {
		t.Errorf("%d posts, the bucket holds 25", f.posts)
	}
	found := false
	for _, e := range f.events {
		found = found || e.Reason == "ForkFailedOutOfPIDs"
	}
	f.mu.Unlock()
	if !found {
		t.Error("the Fatal waits behind warnings")
	}
	if n := len(b.Pending()); n > maxWaiting {
		t.Errorf("%d notices wait", n)
	}
	if s := w.summary(time.Now()); !strings.Contains(s.Message, "237 events were not written") || !strings.Contains(s.Message, "KernelOops 237") {
		t.Errorf("summary %q", s.Message)
	}
}

func TestARefusedEventIsDroppedAndOthersGoOn(t *testing.T) {
	w := NewEventWriter(EventOptions{Log: slog.New(slog.DiscardHandler)})
	if err := w.final(apierrors.NewBadRequest("no"), notice("a", 1)); err != nil {
		t.Errorf("tried again for ever: %v", err)
	}
	if err := w.final(apierrors.NewInternalError(errors.New("no")), notice("a", 1)); err == nil {
		t.Error("given up on an error of the moment")
	}
}

func TestTheEKSStyleHasTheEKSAgentsShape(t *testing.T) {
	body, err := StyleEKS.create("x", notice("a", 3), EventOptions{Node: "n", UID: func() string { return "" }, Instance: "i"})
	if err != nil {
		t.Fatal(err)
	}
	var e corev1.Event
	if err := json.Unmarshal(body, &e); err != nil {
		t.Fatal(err)
	}
	if e.Reason != "KernelReady" || e.Message != "KernelOops: cpu3: the kernel oopsed" || e.Count != 3 ||
		!e.LastTimestamp.Time.Equal(since(2)) || e.InvolvedObject.UID != "n" || e.Source.Component != "eks-node-monitoring-agent" {
		t.Errorf("%s", body)
	}
}

func TestEventNamesAreStableDistinctAndValid(t *testing.T) {
	a := EventName("n", "boot", notice("a", 1))
	if a != EventName("n", "boot", notice("a", 7)) {
		t.Error("the count changes the name")
	}
	recovered := notice("a", 1)
	recovered.Kind = ledger.Recovered
	for _, other := range []string{
		EventName("m", "boot", notice("a", 1)), EventName("n", "boot2", notice("a", 1)),
		EventName("n", "boot", notice("b", 1)), EventName("n", "boot", recovered),
	} {
		if other == a {
			t.Errorf("two events are named %s", a)
		}
	}
	if long := EventName(strings.Repeat("n", 253), "boot", notice("a", 1)); len(long) > 253 {
		t.Errorf("%d bytes", len(long))
	}
}

func TestTheBucketGivesABurstAndThenOneAtATime(t *testing.T) {
	now := since(0)
	b := newBucket(3, 5*time.Second, now)
	for i := range 3 {
		if b.take(now) != 0 {
			t.Fatalf("no token %d of the burst", i)
		}
	}
	if wait := b.take(now); wait <= 4*time.Second || wait > 5*time.Second {
		t.Errorf("wait %s", wait)
	}
	if b.take(now.Add(5*time.Second)) != 0 {
		t.Error("no token after the interval")
	}
	if b.take(now.Add(-time.Hour)) == 0 {
		t.Error("a clock that was stepped back gave a token")
	}
}

func TestAnEventAboutAPodIsInItsNamespaceAndNamesTheNode(t *testing.T) {
	for style, want := range map[Style]string{
		StyleOurs: "cpu3: the kernel oopsed (node n)",
		StyleEKS:  "KernelOops: cpu3: the kernel oopsed (node n)",
	} {
		n := notice("kmsg/boot/1/pod/u0", 1)
		n.Pod, n.OnPod = &ledger.Pod{Namespace: "ml", Name: "train-0", UID: "u0"}, true
		b, err := style.create("name", n, EventOptions{Node: "n", UID: func() string { return "uid-1" }})
		if err != nil {
			t.Fatal(err)
		}
		var e struct {
			Metadata                  struct{ Namespace string }
			Regarding, InvolvedObject corev1.ObjectReference
			Note, Message             string
		}
		if err := json.Unmarshal(b, &e); err != nil {
			t.Fatal(err)
		}
		object := e.Regarding
		if style == StyleEKS {
			object = e.InvolvedObject
		}
		if e.Metadata.Namespace != "ml" || object.Kind != "Pod" || object.Namespace != "ml" || object.Name != "train-0" || object.UID != "u0" || e.Note+e.Message != want {
			t.Errorf("%s: %s", style, b)
		}
	}
}

func TestAPodWhoseNamespaceIsGoneHoldsNothingUp(t *testing.T) {
	w := NewEventWriter(EventOptions{Log: slog.New(slog.DiscardHandler)})
	n := notice("kmsg/boot/1/pod/u0", 1)
	gone := apierrors.NewNotFound(corev1.Resource("namespaces"), "ml")
	if w.final(gone, n) == nil {
		t.Error("an Event about the Node was dropped")
	}
	n.Pod, n.OnPod = &ledger.Pod{Namespace: "ml", Name: "train-0", UID: "u0"}, true
	if err := w.final(gone, n); err != nil {
		t.Errorf("tried for ever: %v", err)
	}
	if w.final(errors.New("connection refused"), n) == nil {
		t.Error("dropped in an outage")
	}
}
