package publish

import "time"

// bucket is a token bucket: a burst, then one token per interval. It belongs to one
// goroutine.
type bucket struct {
	size   float64
	every  time.Duration
	tokens float64
	at     time.Time
}

func newBucket(size int, every time.Duration, now time.Time) bucket {
	return bucket{size: float64(size), every: every, tokens: float64(size), at: now}
}

// take takes a token and returns 0, or returns how long to wait for one.
func (b *bucket) take(now time.Time) time.Duration {
	if passed := now.Sub(b.at); passed > 0 {
		b.tokens = min(b.size, b.tokens+float64(passed)/float64(b.every))
	}
	b.at = now
	if b.tokens < 1 {
		return max(time.Duration((1-b.tokens)*float64(b.every)), time.Millisecond)
	}
	b.tokens--
	return 0
}
