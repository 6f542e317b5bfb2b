package ekslogs

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

var (
	errDeleted  = errors.New("the NodeDiagnostic was deleted by someone while the node was collecting")
	errReplaced = errors.New("the NodeDiagnostic was deleted and made anew by someone while the node was collecting")
)

const (
	// rewatchPause keeps a watch that ends at once from becoming a busy loop.
	rewatchPause = 500 * time.Millisecond
	// pollInterval is for users who may get but not watch.
	pollInterval = 2 * time.Second
)

// waiter follows one NodeDiagnostic until its log capture has ended.
type waiter struct {
	c *cluster
	// running is told once that the agent is at work, trouble of what the wait goes on
	// in spite of.
	running func(since time.Time)
	trouble func(error)

	begun bool
	// outages counts the failures since the API server last answered.
	outages int
}

// wait returns how the capture of obj's generation, or a later one, ended. The
// object is followed by its UID: one that takes its place is an error. Watches end
// and resource versions expire in the ordinary course of things; each time the
// object is read anew, so that nothing is missed.
func (w *waiter) wait(ctx context.Context, obj *v1alpha1.NodeDiagnostic) (*v1alpha1.CaptureStateCompleted, error) {
	name, uid := obj.Name, obj.UID
	for {
		done, err := w.look(obj, uid)
		if done != nil || err != nil {
			return done, err
		}
		done, err = w.watchFrom(ctx, obj, uid)
		if done != nil {
			return done, nil
		}
		for read := false; !read; {
			if err := w.recover(ctx, err); err != nil {
				return nil, err
			}
			obj, err = w.c.get(ctx, name)
			read = err == nil
		}
		w.outages = 0
	}
}

// recover waits before the next try, or returns err if there is no sense in one.
func (w *waiter) recover(ctx context.Context, err error) error {
	pause := rewatchPause
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errDeleted), errors.Is(err, errReplaced), apierrors.IsUnauthorized(err):
		return err
	case apierrors.IsNotFound(err):
		return errDeleted
	case apierrors.IsForbidden(err):
		if w.outages > 0 {
			// The read that came in place of the watch is denied, too.
			return err
		}
		pause = pollInterval
		w.outages++
	case err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err):
		w.outages++
		pause = min(rewatchPause<<min(w.outages, 4), 5*time.Second)
		if w.outages == 3 {
			w.trouble(err)
		}
	}
	return sleep(ctx, pause)
}

// watchFrom returns a capture that has ended, or else nil and why the watch did.
func (w *waiter) watchFrom(ctx context.Context, obj *v1alpha1.NodeDiagnostic, uid types.UID) (*v1alpha1.CaptureStateCompleted, error) {
	events, err := w.c.diagnostics.Get().Resource(v1alpha1.Resource).VersionedParams(&metav1.ListOptions{
		Watch:               true,
		FieldSelector:       fields.OneTermEqualSelector("metadata.name", obj.Name).String(),
		ResourceVersion:     obj.ResourceVersion,
		AllowWatchBookmarks: true,
	}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case e, ok := <-events.ResultChan():
			if !ok {
				return nil, nil
			}
			done, err := w.event(e, uid)
			if done != nil || err != nil {
				return done, err
			}
		}
	}
}

func (w *waiter) event(e watch.Event, uid types.UID) (*v1alpha1.CaptureStateCompleted, error) {
	switch e.Type {
	case watch.Error:
		return nil, apierrors.FromObject(e.Object)
	case watch.Bookmark:
		return nil, nil
	}
	obj, ok := e.Object.(*v1alpha1.NodeDiagnostic)
	if !ok {
		return nil, fmt.Errorf("the watch brought a %T", e.Object)
	}
	if e.Type == watch.Deleted {
		if obj.UID == uid {
			return nil, errDeleted
		}
		return nil, nil
	}
	return w.look(obj, uid)
}

// look decides whether obj says that its capture has ended. An agent that does not
// tell which generation it captured is taken at its word.
func (w *waiter) look(obj *v1alpha1.NodeDiagnostic, uid types.UID) (*v1alpha1.CaptureStateCompleted, error) {
	if obj.UID != uid {
		return nil, errReplaced
	}
	capture := obj.Status.Capture(v1alpha1.CaptureTypeLog)
	if capture == nil {
		return nil, nil
	}
	if done := capture.State.Completed; done != nil && (done.ObservedGeneration == 0 || done.ObservedGeneration >= obj.Generation) {
		return done, nil
	}
	if run := capture.State.Running; run != nil && !w.begun {
		w.begun = true
		w.running(run.StartedAt.Time)
	}
	return nil, nil
}
