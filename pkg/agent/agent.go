// Package agent is the wiring of node-agent: it keeps the agent's components
// running until the process is told to stop.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

// Component is one part of the agent that works on its own, such as the watch of
// the NodeDiagnostic or the publisher of conditions.
type Component interface {
	// Name names the component in logs. It does not change.
	Name() string
	// Run works until ctx ends and returns when nothing of it is left running. It
	// is called again, after a pause, when it returns while ctx lasts: a return
	// without error is as unexpected as one with, unless the error is ErrFinished.
	Run(ctx context.Context) error
}

// ErrFinished is what a component returns that has nothing (more) to do on this
// node, for example because the hardware is not there. It is not run again.
var ErrFinished = errors.New("nothing to do on this node")

const (
	backoffMin = time.Second
	backoffMax = time.Minute
	// healthyAfter is how long a component must have run for its next pause to
	// start at backoffMin again.
	healthyAfter = 10 * time.Minute
)

// Run runs the components side by side until ctx ends and all of them have
// returned. One that fails or panics never touches the others: it is logged and
// run again after a pause that doubles up to a minute.
func Run(ctx context.Context, log *slog.Logger, components ...Component) {
	var wg sync.WaitGroup
	for _, c := range components {
		wg.Go(func() { supervise(ctx, log.With("component", c.Name()), c, backoffMin) })
	}
	wg.Wait()
}

func supervise(ctx context.Context, log *slog.Logger, c Component, first time.Duration) {
	pause := first
	for ctx.Err() == nil {
		start := time.Now()
		err := runOnce(ctx, c)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrFinished):
			log.Info("finished", "why", err)
			return
		case time.Since(start) > healthyAfter:
			pause = first
		}
		// Jitter, so that a fleet that lost the API server does not come back as one.
		wait := pause + rand.N(pause/2+1)
		log.Error("component ended, it is run again after a pause", "err", err, "pause", wait.Round(time.Millisecond))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		pause = min(2*pause, max(first, backoffMax))
	}
}

func runOnce(ctx context.Context, c Component) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.Run(ctx)
}
