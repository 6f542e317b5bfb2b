package ekslogs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// Labels and annotations of the NodeDiagnostics that the plugin makes.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByValue = "kubectl-ekslogs"
	// requestedByAnnotation tells colleagues whose request it is.
	requestedByAnnotation = "ekslogs.io/requested-by"
	// requestIDAnnotation tells this run's object from any other, also when the answer
	// to its creation was lost.
	requestIDAnnotation = "ekslogs.io/request-id"
	// sinceAnnotation asks the agent how far back to read journals, as a Go duration.
	// The API has no field for it; an agent that does not know it reads its default.
	sinceAnnotation = "ekslogs.io/since"
)

// afterInterrupt is how long a request that must not be torn off goes on after
// Ctrl-C, and cleanupTimeout how long one clean-up may take after that: together
// less than 10 s.
const (
	afterInterrupt = 2 * time.Second
	cleanupTimeout = 7 * time.Second
)

// existsError says that the node has a NodeDiagnostic that this run did not make.
type existsError struct{ obj *v1alpha1.NodeDiagnostic }

func (e *existsError) Error() string {
	return fmt.Sprintf("a NodeDiagnostic %s exists already, made %s ago by %s (%s). Use --attach to take the bundle that it asks for, "+
		"or --replace to delete it and start anew", e.obj.Name, age(e.obj), owner(e.obj), stateOf(e.obj))
}

func age(obj *v1alpha1.NodeDiagnostic) string {
	return duration.HumanDuration(max(0, time.Since(obj.CreationTimestamp.Time)))
}

// owner names who made the object: the person if the plugin did, else the manager of
// its fields.
func owner(obj *v1alpha1.NodeDiagnostic) string {
	name := obj.Labels[managedByLabel]
	if by := obj.Annotations[requestedByAnnotation]; by != "" {
		return strings.TrimSpace(by + " with " + name)
	}
	for _, f := range obj.ManagedFields {
		if f.Subresource == "" && f.Manager != "" && name == "" {
			name = f.Manager
		}
	}
	if name == "" {
		return "an unknown owner"
	}
	return name
}

func stateOf(obj *v1alpha1.NodeDiagnostic) string {
	c := obj.Status.Capture(v1alpha1.CaptureTypeLog)
	switch {
	case obj.Spec.LogCapture == nil:
		return "it asks for no logs"
	case c == nil:
		return "not begun by an agent"
	case c.State.Completed != nil:
		return "completed: " + c.State.Completed.Reason
	default:
		return "running"
	}
}

// newRequest is the object that asks for the bundle of node.
func newRequest(o *Options, node string) *v1alpha1.NodeDiagnostic {
	obj := &v1alpha1.NodeDiagnostic{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind},
		ObjectMeta: metav1.ObjectMeta{
			Name:   node,
			Labels: map[string]string{managedByLabel: managedByValue},
			Annotations: map[string]string{
				requestedByAnnotation: requester(),
				requestIDAnnotation:   rand.Text(),
			},
		},
		Spec: v1alpha1.NodeDiagnosticSpec{LogCapture: &v1alpha1.LogCapture{
			Destination: v1alpha1.DestinationNode,
			Categories:  o.Categories,
		}},
	}
	if o.Since > 0 {
		obj.Annotations[sinceAnnotation] = o.Since.String()
	}
	return obj
}

func requester() string {
	who := "someone"
	if u, err := user.Current(); err == nil && u.Username != "" {
		who = u.Username
	}
	if host, err := os.Hostname(); err == nil && host != "" {
		who += "@" + host
	}
	return who
}

// create makes the object, and never replaces one. A request that was on its way
// when ctx ended is waited for a moment, so that nothing is left behind unknown.
func (c *cluster) create(ctx context.Context, want *v1alpha1.NodeDiagnostic) (*v1alpha1.NodeDiagnostic, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	detached, cancel := lingering(ctx, afterInterrupt)
	defer cancel()
	bounded, cancelBound := c.bound(detached)
	defer cancelBound()
	made := &v1alpha1.NodeDiagnostic{}
	err := c.diagnostics.Post().Resource(v1alpha1.Resource).Body(want).Do(bounded).Into(made)
	if err == nil {
		return made, nil
	}
	if apierrors.IsAlreadyExists(err) || apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
		// The answer to an earlier try may have been lost; then it is ours.
		got, gerr := c.get(detached, want.Name)
		switch {
		case gerr == nil && got.Annotations[requestIDAnnotation] == want.Annotations[requestIDAnnotation]:
			return got, nil
		case gerr == nil && apierrors.IsAlreadyExists(err):
			return nil, &existsError{got}
		}
	}
	return nil, err
}

func (c *cluster) get(ctx context.Context, name string) (*v1alpha1.NodeDiagnostic, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	obj := &v1alpha1.NodeDiagnostic{}
	return obj, c.diagnostics.Get().Resource(v1alpha1.Resource).Name(name).Do(ctx).Into(obj)
}

// remove deletes the object that was seen, not one that has taken its place.
func (c *cluster) remove(ctx context.Context, obj *v1alpha1.NodeDiagnostic) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	err := c.diagnostics.Delete().Resource(v1alpha1.Resource).Name(obj.Name).
		Body(&metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions: &metav1.Preconditions{UID: &obj.UID},
		}).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// acquire returns the object to wait for, and whether this run made it.
func (c *cluster) acquire(ctx context.Context, o *Options, node string) (obj *v1alpha1.NodeDiagnostic, made bool, err error) {
	want := newRequest(o, node)
	obj, err = c.create(ctx, want)
	var exists *existsError
	if err == nil || !errors.As(err, &exists) {
		return obj, err == nil, err
	}
	switch {
	case o.Attach:
		capture := exists.obj.Spec.LogCapture
		if capture == nil || capture.Destination != v1alpha1.DestinationNode {
			return nil, false, fmt.Errorf("nothing to attach to: the NodeDiagnostic %s, made %s ago by %s, keeps no bundle on the node",
				node, age(exists.obj), owner(exists.obj))
		}
		return exists.obj, false, nil
	case o.Replace:
		if err := c.remove(ctx, exists.obj); err != nil {
			return nil, false, err
		}
		// A finalizer may hold the old one for a while.
		for deadline := time.Now().Add(c.requestTimeout); ; {
			obj, err = c.create(ctx, want)
			if !errors.As(err, &exists) || exists.obj.DeletionTimestamp == nil || time.Now().After(deadline) {
				return obj, err == nil, err
			}
			if err := sleep(ctx, 250*time.Millisecond); err != nil {
				return nil, false, err
			}
		}
	}
	return nil, false, err
}

// lingering returns a context that ends a while after ctx does.
func lingering(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = sleep(detached, while)
		cancel(context.Cause(ctx))
	})
	return detached, func() { stop(); cancel(nil) }
}

// sleep waits, or returns the reason for which ctx ended.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
