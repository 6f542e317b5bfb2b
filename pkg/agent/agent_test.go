package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type componentFunc func(context.Context) error

func (componentFunc) Name() string                    { return "test" }
func (f componentFunc) Run(ctx context.Context) error { return f(ctx) }

func TestAFailedOrPanickedComponentIsRunAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	supervise(ctx, slog.New(slog.DiscardHandler), componentFunc(func(context.Context) error {
		runs++
		switch runs {
		case 1:
			return errors.New("no")
		case 2:
			panic("boom")
		case 3:
			return nil
		}
		cancel()
		return nil
	}), time.Microsecond)
	if runs != 4 {
		t.Errorf("ran %d times, want 4", runs)
	}
}

func TestAFinishedComponentIsNotRunAgainAndOthersGoOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var runs atomic.Int32
	finished := make(chan struct{})
	Run(ctx, slog.New(slog.DiscardHandler),
		componentFunc(func(context.Context) error {
			runs.Add(1)
			close(finished)
			return ErrFinished
		}),
		componentFunc(func(ctx context.Context) error {
			<-finished
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}))
	if runs.Load() != 1 {
		t.Errorf("the finished component ran %d times", runs.Load())
	}
}
