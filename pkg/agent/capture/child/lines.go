package child

import (
	"bytes"
	"io"
	"os"
	"sync"
)

// maxLine bounds what is kept of a line whose end has not come yet.
const maxLine = 1 << 20

// lines cuts a stream into lines.
type lines struct {
	each func([]byte)
	buf  []byte
	skip bool
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for {
		head, rest, found := bytes.Cut(p, []byte("\n"))
		if !l.skip {
			l.buf = append(l.buf, head...)
		}
		if len(l.buf) > maxLine {
			l.buf, l.skip = nil, true
		}
		if !found {
			return n, nil
		}
		if !l.skip && l.each != nil {
			l.each(l.buf)
		}
		l.buf, l.skip, p = l.buf[:0], false, rest
	}
}

// gate passes writes on until it is shut, so that nothing is told by a process that
// nobody waits for any more. Shutting waits for a write in progress.
type gate struct {
	mu     sync.Mutex
	w      io.Writer
	closed bool
}

func newGate(w io.Writer) *gate {
	if w == nil {
		w = io.Discard
	}
	return &gate{w: w}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, os.ErrClosed
	}
	return g.w.Write(p)
}
