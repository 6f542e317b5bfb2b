package publish

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
)

// Outbox is where notices wait to be told.
type Outbox interface {
	// Pending returns the notices, the oldest first.
	Pending() []ledger.Notice
	// Delivered takes one out.
	Delivered(ledger.Notice)
}

// EventOptions make an EventWriter.
type EventOptions struct {
	// Node and UID name the Node that Events are about. UID may return "" while it is
	// not known: Events then carry the node's name as uid, as the kubelet's do, which
	// "kubectl describe node" shows as well.
	Node string
	UID  func() string
	// Boot is the boot id. It is part of the Events' names.
	Boot string
	// Client is a client of the group that Style writes.
	Client rest.Interface
	Style  Style
	// Instance names the pod or host that reports.
	Instance string
	Outbox   Outbox
	// Quiet, when it returns true, holds Events back: the agent stands by.
	Quiet func() bool
	Log   *slog.Logger
}

// EventWriter writes notices as Events. It is not client-go's recorder, which loses
// Events on errors, and gives them names by which a restart tells all of them again.
// An Event's name is derived from the notice, so that AlreadyExists means done.
type EventWriter struct {
	opts       EventOptions
	bucket     bucket
	wake       chan struct{}
	suppressed map[string]int
	retry      time.Duration
	timeout    time.Duration
}

// maxWaiting is how many notices wait for the token bucket; what comes on top is
// counted and told in one Event.
const maxWaiting = 64

// NewEventWriter returns a writer.
func NewEventWriter(opts EventOptions) *EventWriter {
	return &EventWriter{
		opts: opts, bucket: newBucket(25, 5*time.Second, time.Now()), wake: make(chan struct{}, 1),
		suppressed: map[string]int{}, retry: 250 * time.Millisecond, timeout: 10 * time.Second,
	}
}

// Wake says that the outbox changed.
func (w *EventWriter) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run writes until ctx ends.
func (w *EventWriter) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	failures := 0
	var notBefore time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
		case <-timer.C:
		}
		if wait := time.Until(notBefore); wait > 0 {
			timer.Reset(wait)
			continue
		}
		wait, err := w.drain(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			wait = min(w.retry<<min(failures, 10), 30*time.Second)
			notBefore = time.Now().Add(wait)
			failures++
			w.opts.Log.Warn("an event could not be written, it is tried again", "err", err, "pause", wait)
		} else {
			failures = 0
		}
		timer.Reset(wait)
	}
}

// drain writes what the bucket allows, and returns when there is more to do.
func (w *EventWriter) drain(ctx context.Context) (time.Duration, error) {
	const idle = time.Hour
	pending := w.opts.Outbox.Pending()
	if w.opts.Quiet != nil && w.opts.Quiet() {
		// The other agent tells what is wrong with the node; ours is that it is there.
		pending = slices.DeleteFunc(pending, func(n ledger.Notice) bool { return n.Reason != AnotherAgentActive })
	}
	slices.SortStableFunc(pending, func(a, b ledger.Notice) int { return b.Severity.Rank() - a.Severity.Rank() })
	for len(pending) > maxWaiting && pending[len(pending)-1].Severity != health.Fatal {
		last := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		w.suppressed[last.Reason]++
		w.opts.Outbox.Delivered(last)
	}
	for _, n := range pending {
		if wait := w.bucket.take(time.Now()); wait > 0 {
			return wait, nil
		}
		if err := w.deliver(ctx, n); err != nil {
			return 0, err
		}
		w.opts.Outbox.Delivered(n)
	}
	if len(w.suppressed) > 0 {
		if wait := w.bucket.take(time.Now()); wait > 0 {
			return wait, nil
		}
		if err := w.deliver(ctx, w.summary(time.Now())); err != nil {
			return 0, err
		}
		clear(w.suppressed)
	}
	return idle, nil
}

// summary is one notice for all that were suppressed.
func (w *EventWriter) summary(now time.Time) ledger.Notice {
	total := 0
	var parts []string
	for reason, n := range w.suppressed {
		total += n
		parts = append(parts, fmt.Sprintf("%s %d", reason, n))
	}
	slices.Sort(parts)
	return ledger.Notice{
		Key: fmt.Sprint("suppressed/", now.UnixNano()), Kind: ledger.Detected, Reason: "EventsSuppressed", Severity: health.Warning,
		Message: fmt.Sprintf("%d events were not written one by one, to spare the API server: %s", total, strings.Join(parts, ", ")),
		First:   now, Last: now, Count: 1,
	}
}

// deliver writes one notice: an update of its Event when it has a count, else, and
// when the Event is gone meanwhile, a new one.
func (w *EventWriter) deliver(ctx context.Context, n ledger.Notice) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	name := EventName(w.opts.Node, w.opts.Boot, n)
	if n.Count > 1 {
		body, err := w.opts.Style.update(n)
		if err != nil {
			return err
		}
		err = w.opts.Client.Patch(types.MergePatchType).Resource("events").Namespace(namespaceOf(n)).Name(name).
			Param("fieldManager", Manager).Body(body).Do(ctx).Error()
		if err == nil || !apierrors.IsNotFound(err) {
			return w.final(err, n)
		}
	}
	body, err := w.opts.Style.create(name, n, w.opts)
	if err != nil {
		return err
	}
	err = w.opts.Client.Post().Resource("events").Namespace(namespaceOf(n)).Param("fieldManager", Manager).
		Body(body).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return w.final(err, n)
}

// final gives up on what will never be accepted; everything else is tried again.
func (w *EventWriter) final(err error, n ledger.Notice) error {
	if n.OnPod && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
		// The namespace is gone or going, or may not be written to. The Node's Event
		// names the pod, and others must not wait.
		w.opts.Log.Warn("an event about a pod is not accepted, it is dropped", "pod", n.Pod.String(), "reason", n.Reason, "err", err)
		return nil
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) {
		w.opts.Log.Error("the API server refuses an event, it is dropped", "reason", n.Reason, "err", err)
		return nil
	}
	return err
}
