package ekslogs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// answerTimeout is how long a node without a sign of an agent has to prove the
// opposite. A living agent answers within a second.
const answerTimeout = 10 * time.Second

var (
	errNoAnswer = errors.New("no agent on the node answers. Install ekslogs, or look why its pod does not run there")
	errTimeout  = errors.New("timed out")
)

// one fetches the bundle of one node and leaves what came of it in res.
func (r *runner) one(ctx context.Context, res *Result) {
	if path := r.o.bundlePath(res.Node); exists(path) && !r.o.Clobber {
		if r.o.SkipExisting {
			res.State, res.File = StateSkipped, path
			return
		}
		res.fail(existsHere(path))
		return
	}
	if path := r.o.folderPath(res.Node); r.o.Extract && exists(path) && !r.o.Clobber {
		res.fail(existsHere(path))
		return
	}
	ready, err := r.checked(ctx, res.Node)
	if err != nil {
		res.fail(err)
		return
	}
	res.AgentVersion = ready.version
	if err := enter(ctx, r.slots); err != nil {
		res.fail(err)
		return
	}
	defer func() { <-r.slots }()
	if err := r.capture(ctx, res, ready); err != nil {
		res.fail(err)
	}
}

func existsHere(path string) error {
	return fmt.Errorf("%s is here already: --clobber overwrites it, --skip-existing leaves the node out, -d puts bundles elsewhere", path)
}

func (r *runner) checked(ctx context.Context, node string) (readiness, error) {
	if err := enter(ctx, r.looks); err != nil {
		return readiness{}, err
	}
	defer func() { <-r.looks }()
	r.p.phase(node, "looking at the node")
	ready, err := r.preflight(ctx, node)
	if ctx.Err() != nil {
		return readiness{}, context.Cause(ctx)
	}
	if err != nil {
		return readiness{}, explain(err, "get", "nodes")
	}
	for _, remark := range ready.remarks {
		r.p.remark(node, remark)
	}
	return ready, nil
}

// capture has the node collect, downloads, and cleans up.
func (r *runner) capture(ctx context.Context, res *Result, ready readiness) error {
	r.p.phase(res.Node, "asking the agent")
	obj, made, err := r.c.acquire(ctx, r.o, res.Node)
	if err != nil {
		return explain(err, "create", v1alpha1.Resource)
	}
	// Whoever made it may still need it; and a bundle that could not be brought home
	// for a reason on this side is worth another try.
	keep := !made || r.o.Keep
	defer func() {
		if !keep {
			r.cleanUp(ctx, obj)
		}
	}()
	done, err := r.collected(ctx, obj, ready)
	if err != nil {
		return err
	}
	res.Message = term.Clean(done.Message)
	started, finished := done.StartedAt.UTC(), done.FinishedAt.UTC()
	res.StartedAt, res.FinishedAt = &started, &finished
	switch done.Reason {
	case v1alpha1.ReasonSuccess:
		res.State = StateSuccess
	case v1alpha1.ReasonSuccessWithErrors:
		res.State = StateSuccessWithErrors
	default:
		return fmt.Errorf("the agent could not collect (%s): %s", term.Clean(done.Reason), res.Message)
	}
	err = r.bringHome(ctx, res)
	if err != nil && made && !keep && worthAnotherTry(ctx, res, err) {
		keep = true
		err = fmt.Errorf("%w\nThe bundle is still on the node for up to ten minutes: kubectl ekslogs %s --attach", err, res.Node)
	}
	return err
}

// collected waits until the agent has collected, not longer than the time for it.
func (r *runner) collected(ctx context.Context, obj *v1alpha1.NodeDiagnostic, ready readiness) (*v1alpha1.CaptureStateCompleted, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timeout := time.AfterFunc(r.o.Timeout, func() { cancel(errTimeout) })
	defer timeout.Stop()
	answer := time.AfterFunc(min(answerTimeout, r.o.Timeout), func() {
		if !ready.agentSeen {
			cancel(errNoAnswer)
			return
		}
		r.p.remark(obj.Name, fmt.Sprintf("the agent has not begun yet; it has %s in all", shortDuration(r.o.Timeout)))
	})
	defer answer.Stop()
	w := &waiter{
		c: r.c,
		running: func(time.Time) {
			answer.Stop()
			r.p.phase(obj.Name, "collecting")
		},
		trouble: func(err error) { r.p.remark(obj.Name, "the API server is hard to reach: "+term.Clean(err.Error())) },
	}
	r.p.phase(obj.Name, "waiting for the agent")
	done, err := w.wait(ctx, obj)
	switch {
	case errors.Is(err, errTimeout) && w.begun:
		return nil, fmt.Errorf("the agent is still collecting after %s: give it longer with --timeout", shortDuration(r.o.Timeout))
	case errors.Is(err, errTimeout):
		return nil, fmt.Errorf("the agent has not begun after %s: look at its pod's log, or give it longer with --timeout", shortDuration(r.o.Timeout))
	case err != nil:
		return nil, explain(err, "get", v1alpha1.Resource)
	}
	return done, nil
}

// cleanUp deletes what this run made, also after Ctrl-C.
func (r *runner) cleanUp(ctx context.Context, obj *v1alpha1.NodeDiagnostic) {
	r.p.phase(obj.Name, "cleaning up")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	if err := r.c.remove(ctx, obj); err != nil {
		r.p.remark(obj.Name, fmt.Sprintf("left behind: the NodeDiagnostic %s could not be deleted: %v", obj.Name, explain(err, "delete", v1alpha1.Resource)))
	}
}

// enter takes a place, or returns the reason for which ctx ended.
func enter(ctx context.Context, places chan struct{}) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case places <- struct{}{}:
		if ctx.Err() != nil {
			<-places
			return context.Cause(ctx)
		}
		return nil
	}
}

// taken reports whether err says that a name is in use.
func taken(err error) bool {
	return errors.Is(err, fs.ErrExist) || strings.Contains(err.Error(), " exists: ")
}
