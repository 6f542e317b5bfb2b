package redact

import (
	"hash"
	"io"
)

const (
	// bufSize is how much text is looked at in one go.
	bufSize = 128 << 10
	// lookahead is how much text after the place where a secret is recognised is
	// always in the buffer. A secret may be longer; its name and its beginning not.
	lookahead = 8 << 10
	// lookback is how much text before a place can still be seen: names of secrets.
	lookback = 512
	// holdback is how much text before the scanner's place is not yet written: a
	// secret may begin a few bytes before the byte by which it is recognised.
	holdback = 64
)

// Writer redacts what is written to it and passes the rest on. Close it to get the
// last of it. It is for one goroutine.
type Writer struct {
	r   *Redactor
	dst io.Writer
	err error

	// buf[:emit] was written already and is there for looking back; buf[emit:scan]
	// was looked at and not yet written; buf[scan:] is new.
	buf        []byte
	emit, scan int
	counts     map[string]int
	// open is the secret whose end is not in the buffer.
	open *openSecret
}

// openSecret is a secret that is longer than the buffer. Its bytes go to the hash.
type openSecret struct {
	kind string
	hash hash.Hash
	end  ender
}

// Writer returns a Writer to dst. It does not close dst.
func (r *Redactor) Writer(dst io.Writer) *Writer {
	return &Writer{r: r, dst: dst}
}

// Counts returns how many secrets of each kind were redacted, nil when none.
func (w *Writer) Counts() map[string]int { return w.counts }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if w.buf == nil {
		w.buf = make([]byte, 0, bufSize)
	}
	n := len(p)
	for len(p) > 0 && w.err == nil {
		k := min(len(p), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, p[:k]...)
		p = p[k:]
		if len(w.buf) == cap(w.buf) {
			w.process(false)
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return n, nil
}

// Close writes what is still held back. It does not close the writer below.
func (w *Writer) Close() error {
	if w.err == nil {
		w.process(true)
	}
	return w.err
}

// process looks at the buffer and makes room in it. final says that nothing
// follows.
func (w *Writer) process(final bool) {
	if w.open != nil && !w.resume(final) {
		return
	}
	limit := len(w.buf)
	if !final {
		limit -= lookahead
	}
	for w.scan < limit {
		i := nextTrigger(w.buf[:limit], w.scan)
		if i == limit {
			w.scan = limit
			break
		}
		w.scan = i + 1
		m, ok := w.match(i)
		if !ok {
			continue
		}
		w.replace(m, final)
		if w.open != nil {
			break
		}
	}
	if final {
		w.write(w.buf[w.emit:])
		w.buf, w.emit, w.scan = w.buf[:0], 0, 0
		return
	}
	if safe := w.scan - holdback; safe > w.emit {
		w.write(w.buf[w.emit:safe])
		w.emit = safe
	}
	w.compact()
}

// match is a secret in the buffer: where it begins, and how its end is found.
type match struct {
	kind  string
	start int
	end   ender
}

// replace writes the text before m and m's token, and goes on after m.
func (w *Writer) replace(m match, final bool) {
	start := max(m.start, w.emit)
	n, done := m.end.find(w.buf[start:], final)
	value := w.buf[start : start+n]
	if done {
		value = m.end.trim(value)
		if !worth(m.kind, value) {
			w.scan = max(w.scan, start)
			return
		}
	}
	w.write(w.buf[w.emit:start])
	h := w.r.hash()
	h.Write(value)
	w.emit = start + len(value)
	w.scan = w.emit
	if done {
		w.token(m.kind, h)
		return
	}
	w.emit, w.scan = start+n, start+n
	w.open = &openSecret{kind: m.kind, hash: h, end: m.end}
}

// resume feeds an open secret. It reports whether its end was found.
func (w *Writer) resume(final bool) bool {
	n, done := w.open.end.find(w.buf[w.emit:], final)
	w.open.hash.Write(w.buf[w.emit : w.emit+n])
	w.emit += n
	w.scan = w.emit
	if !done {
		w.compact()
		return false
	}
	w.token(w.open.kind, w.open.hash)
	w.open = nil
	return true
}

func (w *Writer) token(kind string, h hash.Hash) {
	w.write([]byte(token(kind, h)))
	if w.counts == nil {
		w.counts = map[string]int{}
	}
	w.counts[kind]++
}

// compact drops what need not be seen any more.
func (w *Writer) compact() {
	drop := max(0, w.emit-lookback)
	n := copy(w.buf, w.buf[drop:])
	w.buf = w.buf[:n]
	w.emit -= drop
	w.scan -= drop
}

func (w *Writer) write(p []byte) {
	if w.err == nil && len(p) > 0 {
		_, w.err = w.dst.Write(p)
	}
}
