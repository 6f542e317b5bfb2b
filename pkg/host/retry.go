package host

import (
	"context"
	"time"
)

// Backoff spaces the attempts of a reader to get its log back. The zero value waits
// 1 s, doubling to 1 min.
type Backoff struct {
	// First and Max bound the wait; 0 means 1 s and 1 min.
	First, Max time.Duration
	next       time.Duration
}

// Reset makes the next wait the first again, after the reader has worked for a
// while.
func (b *Backoff) Reset() { b.next = 0 }

// Wait waits before the next attempt. It is false when ctx ended.
func (b *Backoff) Wait(ctx context.Context) bool {
	first, most := b.First, b.Max
	if first <= 0 {
		first = time.Second
	}
	if most <= 0 {
		most = time.Minute
	}
	d := min(max(b.next, first), most)
	b.next = 2 * d
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
