package collect

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"sync"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
	"github.com/ekslogs/ekslogs/pkg/collect/redact"
)

// errFlood ends a source that gives far more than is kept of it.
var errFlood = errors.New("gave far more than is kept of it and was ended")

// floodFactor is how many times its bound a source may give before it is ended.
const floodFactor = 8

// sink is where a source writes one item: through the redactor into the spool.
// After close, which waits for a write in progress, nothing is written any more: a
// source that hangs may come back at any time.
type sink struct {
	mu     sync.Mutex
	closed bool

	red   *redact.Redactor
	text  *redact.Writer // nil for a binary item
	zip   *gzip.Writer
	spool *spool
	space *space
	// limit is the item's bound, flood where it is ended (0: never), in the bytes.
	limit, flood, in int64

	counts map[string]int
	binary bool
	cut    bool // a source left out the middle by itself
	// flooded says that the source was ended for giving too much.
	flooded bool
	exit    *int
	argv    []string
	from    string
	// kind is the kind of the source that was used, where there is a choice.
	kind bundle.Source
}

func newSink(red *redact.Redactor, limit int64, sp *space, newFile func() (*os.File, error)) *sink {
	s := &sink{red: red, spool: newSpool(limit, newFile), space: sp, limit: limit, flood: floodFactor * limit}
	s.text = red.Writer(spaceWriter{s})
	return s
}

// spaceWriter is the way from the redactor to the spool.
type spaceWriter struct{ s *sink }

func (w spaceWriter) Write(p []byte) (int, error) {
	if err := w.s.space.use(len(p)); err != nil {
		return 0, err
	}
	return w.s.spool.Write(p)
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, os.ErrClosed
	}
	s.in += int64(len(p))
	if s.flood > 0 && s.in > s.flood {
		s.flooded = true
		return 0, errFlood
	}
	if s.text == nil {
		return spaceWriter{s}.Write(p)
	}
	return s.text.Write(p)
}

// written is how many bytes the source has given so far.
func (s *sink) written() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in
}

// note records facts for the manifest.
func (s *sink) note(f func(*sink)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		f(s)
	}
}

// unlimited lets a source give any amount: of a journal the newest counts.
func (s *sink) unlimited() { s.note(func(s *sink) { s.flood = 0 }) }

// storeRaw makes the item binary: stored as it is.
func (s *sink) storeRaw() {
	s.note(func(s *sink) { s.text, s.binary = nil, true })
}

// compress stores the item gzip-compressed: what is written is redacted first.
func (s *sink) compress() {
	s.note(func(s *sink) {
		s.zip = gzip.NewWriter(spaceWriter{s})
		s.text = s.red.Writer(s.zip)
	})
}

// gap says that the source leaves out n bytes here. What follows is redacted on its
// own.
func (s *sink) gap(n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return os.ErrClosed
	}
	if err := s.flushText(); err != nil {
		return err
	}
	s.cut = true
	s.text = s.red.Writer(spaceWriter{s})
	_, err := io.WriteString(spaceWriter{s}, gapLine(n, s.limit))
	return err
}

func (s *sink) flushText() error {
	if s.text == nil {
		return nil
	}
	err := s.text.Close()
	for kind, n := range s.text.Counts() {
		if s.counts == nil {
			s.counts = map[string]int{}
		}
		s.counts[kind] += n
	}
	return err
}

// close ends the item.
func (s *sink) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	err := s.flushText()
	if s.zip != nil {
		err = errors.Join(err, s.zip.Close())
	}
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if s.flooded {
		return errFlood
	}
	return nil
}

func (s *sink) redactions() map[string]int { return maps.Clone(s.counts) }
