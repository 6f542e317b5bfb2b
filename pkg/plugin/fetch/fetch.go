// Package fetch brings a node's bundle home through the API server: a download that
// survives dropped connections, is verified while it streams, and takes its name
// only when it is whole.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

const (
	// DefaultIdle is how long a connection may bring nothing.
	DefaultIdle = 30 * time.Second
	// DefaultAttempts is how many requests in a row may fail without a single byte.
	DefaultAttempts = 6
	// maxRestarts is how often a file that changes while it is read is begun anew.
	maxRestarts = 3
)

// Download is one file to fetch.
type Download struct {
	// Client makes the requests. It must have no Timeout: that would be a bound on the
	// whole download. Redirects are not followed, whatever it says.
	Client *http.Client
	// URL is of the file.
	URL string
	// Idle and Attempts are DefaultIdle and DefaultAttempts if 0.
	Idle     time.Duration
	Attempts int
	// Progress, if set, is told how many bytes are there of how many; a total of -1 is
	// not known. It is called often, from one goroutine at a time.
	Progress func(done, total int64)
	// Retrying, if set, is told why the connection is made anew.
	Retrying func(err error)
	// Pause waits before the attempt'th request after a failure, from 1 up; nil waits
	// 0.5 s, doubled each time, at most 8 s.
	Pause func(ctx context.Context, attempt int) error
}

// Result is a file that was fetched and verified.
type Result struct {
	// Size is in bytes, SHA256 in hex.
	Size   int64
	SHA256 string
	// Report is what the verification found.
	Report *bundle.Report
	// Resumed counts the connections that went on where another had dropped.
	Resumed int
}

// To writes the file to f, which must be empty and stays the caller's, and verifies
// it on the way. The errors are those of errors.go, of ctx, or of the network.
func (d Download) To(ctx context.Context, f *os.File) (*Result, error) {
	d.defaults()
	s := &session{Download: d, f: f, total: -1}
	defer func() { s.stopSink() }()
	for failures := 0; ; {
		before := s.offset()
		err := s.attempt(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !retryable(err) {
			return nil, err
		}
		if s.offset() > before {
			failures = 0
		}
		failures++
		if failures >= d.Attempts {
			return nil, fmt.Errorf("gave up after %d attempts without a byte: %w", failures, err)
		}
		if d.Retrying != nil {
			d.Retrying(err)
		}
		if err := d.Pause(ctx, failures); err != nil {
			return nil, context.Cause(ctx)
		}
	}
	return s.finish()
}

func (d *Download) defaults() {
	if d.Idle <= 0 {
		d.Idle = DefaultIdle
	}
	if d.Attempts <= 0 {
		d.Attempts = DefaultAttempts
	}
	if d.Pause == nil {
		d.Pause = pause
	}
	c := *d.Client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	d.Client = &c
}

func pause(ctx context.Context, attempt int) error {
	t := time.NewTimer(min(500*time.Millisecond<<min(attempt-1, 8), 8*time.Second))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Small fetches a file of at most limit bytes, such as a checksum, in one request.
// It returns nil without an error if the server has none.
func (d Download) Small(ctx context.Context, limit int64) ([]byte, error) {
	d.defaults()
	ctx, cancel := context.WithTimeout(ctx, d.Idle)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, nil)
	if err != nil {
		return nil, err
	}
	resp, err := d.Client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if err := unexpected(resp); err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errors.New("longer than a checksum is")
	}
	return b, err
}
