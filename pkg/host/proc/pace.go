package proc

import (
	"context"
	"time"
)

// A walk works for at most a slice and then rests: a millisecond in ten, so that what
// runs on the same core is not held up.
const (
	slice = time.Millisecond
	rest  = 9 * time.Millisecond
)

type pacer struct{ since time.Time }

func newPacer() *pacer { return &pacer{since: time.Now()} }

// step rests when the slice is used up. The error is that of ctx.
func (p *pacer) step(ctx context.Context) error {
	if err := ctx.Err(); err != nil || time.Since(p.since) < slice {
		return err
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-t.C:
		p.since = time.Now()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
