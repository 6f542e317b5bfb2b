package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// errIdle is the cause of a request that was given up for want of bytes.
var errIdle = errors.New("the connection brought nothing for too long")

// session is the state of a download across its connections.
type session struct {
	Download
	f *os.File
	// sink takes the bytes of the version of the file that is being read; nil before
	// the first byte.
	sink *sink
	// validator is that version's Last-Modified or ETag, total its size or -1.
	validator string
	total     int64
	restarts  int
	resumed   int
}

func (s *session) offset() int64 {
	if s.sink == nil {
		return 0
	}
	return s.sink.n
}

// attempt makes one request and reads as far as it gets. It returns nil once the
// file is there to its end.
func (s *session) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(s.Idle, func() { cancel(errIdle) })
	defer idle.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return err
	}
	from := s.offset()
	if from > 0 && s.validator == "" {
		// Nothing could tell whether it is still the same file.
		if err := s.restart(); err != nil {
			return err
		}
		from = 0
	}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		req.Header.Set("If-Range", s.validator)
	}
	resp, err := s.Client.Do(req)
	if err != nil {
		return because(ctx, err)
	}
	defer resp.Body.Close()
	if err := s.accept(resp, from); err != nil {
		return err
	}
	return because(ctx, s.copy(resp.Body, idle))
}

// because prefers the reason for which ctx ended to the error that it led to.
func because(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errIdle) {
		return errIdle
	}
	return err
}

// accept decides whether the response goes on where the last one ended or begins
// anew.
func (s *session) accept(resp *http.Response, from int64) error {
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && from > 0 {
		// The file has become shorter, or the end that was missed is no byte at all.
		if s.total >= 0 && from == s.total {
			return nil
		}
		return s.changed()
	}
	if err := unexpected(resp); err != nil {
		return err
	}
	if resp.StatusCode == http.StatusPartialContent {
		start, total, err := contentRange(resp.Header.Get("Content-Range"))
		if err != nil {
			return err
		}
		if start != from || total != s.total || validator(resp) != s.validator {
			return s.changed()
		}
		s.resumed++
		return nil
	}
	if from > 0 {
		if err := s.restarted(); err != nil {
			return err
		}
	}
	s.total, s.validator = resp.ContentLength, validator(resp)
	if s.sink == nil {
		s.sink = newSink(s.f)
	}
	return nil
}

func (s *session) copy(body io.Reader, idle *time.Timer) error {
	buf := make([]byte, 256<<10)
	for {
		idle.Reset(s.Idle)
		n, err := body.Read(buf)
		// A slow disk here is not an idle connection.
		idle.Stop()
		if n > 0 {
			if s.total >= 0 && s.offset()+int64(n) > s.total {
				return &ResponseError{Message: fmt.Sprintf("more than the %d bytes that were announced", s.total)}
			}
			if werr := s.sink.write(buf[:n]); werr != nil {
				return werr
			}
			if s.Progress != nil {
				s.Progress(s.offset(), s.total)
			}
		}
		switch {
		case err == io.EOF && (s.total < 0 || s.offset() == s.total):
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
}

// changed forgets what was read and asks for another attempt.
func (s *session) changed() error {
	if err := s.restarted(); err != nil {
		return err
	}
	return errChanged
}

func (s *session) restarted() error {
	s.restarts++
	if s.restarts > maxRestarts {
		return &ResponseError{Message: fmt.Sprintf("it was replaced %d times while it was being read; something keeps writing it anew", s.restarts)}
	}
	return s.restart()
}

func (s *session) restart() error {
	s.stopSink()
	s.sink, s.validator, s.total = nil, "", -1
	if err := s.f.Truncate(0); err != nil {
		return &LocalError{Err: err}
	}
	if _, err := s.f.Seek(0, io.SeekStart); err != nil {
		return &LocalError{Err: err}
	}
	return nil
}

func (s *session) stopSink() {
	if s.sink != nil {
		s.sink.abort()
	}
}

func (s *session) finish() (*Result, error) {
	report, err := s.sink.finish()
	if err != nil {
		return nil, err
	}
	return &Result{Size: s.sink.n, SHA256: s.sink.hex(), Report: report, Resumed: s.resumed}, nil
}

// validator returns what If-Range takes: the kubelet sends Last-Modified only, and a
// weak ETag would not do.
func validator(resp *http.Response) string {
	if tag := resp.Header.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return resp.Header.Get("Last-Modified")
}

// contentRange reads "bytes 1000-2999/3000".
func contentRange(h string) (start, total int64, err error) {
	rest, ok := strings.CutPrefix(h, "bytes ")
	span, size, ok2 := strings.Cut(rest, "/")
	first, _, ok3 := strings.Cut(span, "-")
	if ok && ok2 && ok3 {
		start, err = strconv.ParseInt(first, 10, 64)
		if err == nil {
			total, err = strconv.ParseInt(size, 10, 64)
		}
		if err == nil {
			return start, total, nil
		}
	}
	return 0, 0, &ResponseError{Message: fmt.Sprintf("a Content-Range of %.80q", h)}
}
