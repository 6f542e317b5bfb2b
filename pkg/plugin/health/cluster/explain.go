package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// silentError says that the API server did not answer in time.
type silentError struct {
	host string
	d    time.Duration
}

func (e *silentError) Error() string {
	return fmt.Sprintf("the API server %s does not answer within %s: check the network and the context (kubectl config current-context), or raise --request-timeout", e.host, e.d)
}

// DeniedError says which right the user lacks.
type DeniedError struct {
	Verb, Resource string
	cause          error
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("you may not %s %s: your role needs\n- apiGroups: [\"\"]\n  resources: [%q]\n  verbs: [%q]", e.Verb, e.Resource, e.Resource, e.Verb)
}

// Unwrap returns the API server's own words.
func (e *DeniedError) Unwrap() error { return e.cause }

// explain turns an error of a request into a sentence that says what to do.
func (c *Cluster) explain(ctx context.Context, err error, verb, resource string) error {
	var (
		silent *silentError
		dial   *net.OpError
		addr   *url.Error
	)
	switch {
	case err == nil:
		return nil
	case errors.As(context.Cause(ctx), &silent):
		return silent
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case apierrors.IsForbidden(err):
		return &DeniedError{verb, resource, err}
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server does not know you: log in again, or name another context with --context (%w)", err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("the API server %s cannot be reached (%w): check the network and the context (kubectl config current-context)", c.host, dial.Err)
	case errors.As(err, &addr):
		return fmt.Errorf("the API server %s cannot be asked: %w", c.host, addr.Err)
	}
	return err
}

// bound ends the context when the API server has been silent for the request timeout.
// Call heard for each sign of life.
func (c *Cluster) bound(ctx context.Context) (bounded context.Context, heard, end func()) {
	bounded, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.timeout, func() { cancel(&silentError{c.host, c.timeout}) })
	return bounded, func() { timer.Reset(c.timeout) }, func() { timer.Stop(); cancel(nil) }
}
