package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// errAborted ends the verification of bytes that are no longer wanted.
var errAborted = errors.New("aborted")

// sink writes bytes to a file, hashes them and has them verified, all while they
// stream.
type sink struct {
	f   *os.File
	sum hash.Hash
	n   int64
	// pipe leads to the verification, which leaves what it found before done closes.
	pipe   *io.PipeWriter
	done   chan struct{}
	report *bundle.Report
	err    error
}

func newSink(f *os.File) *sink {
	r, w := io.Pipe()
	s := &sink{f: f, sum: sha256.New(), pipe: w, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.report, s.err = bundle.Verify(r)
		if s.err != nil {
			// Fails the writer at once: a damaged bundle is not read to its end.
			_ = r.CloseWithError(s.err)
			return
		}
		_, _ = io.Copy(io.Discard, r)
	}()
	return s
}

func (s *sink) write(p []byte) error {
	if _, err := s.f.Write(p); err != nil {
		return &LocalError{Err: err}
	}
	s.sum.Write(p)
	s.n += int64(len(p))
	if _, err := s.pipe.Write(p); err != nil {
		return &BundleError{Err: err}
	}
	return nil
}

// finish ends the stream and returns what the verification says of it.
func (s *sink) finish() (*bundle.Report, error) {
	_ = s.pipe.Close()
	<-s.done
	if s.err != nil {
		return nil, &BundleError{Err: s.err}
	}
	return s.report, nil
}

// abort ends the verification, if it has not ended yet.
func (s *sink) abort() {
	_ = s.pipe.CloseWithError(errAborted)
	<-s.done
}

func (s *sink) hex() string { return hex.EncodeToString(s.sum.Sum(nil)) }
