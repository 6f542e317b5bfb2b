package journal

import "bytes"

const (
	// maxLine bounds a line. A message of 1 MiB is up to 6 MiB in JSON.
	maxLine = 8 << 20
	// keepBuffer is the largest buffer that is kept after a long line.
	keepBuffer = 256 << 10
)

// lines is an io.Writer that hands on whole lines, without their newline. A longer
// line than maxLine is left out and counted.
type lines struct {
	handle  func([]byte) error
	tooLong func()

	partial  []byte
	skipping bool
}

func (l *lines) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		p = rest
		switch {
		case l.skipping:
			l.skipping = !whole
			continue
		case len(l.partial)+len(line) > maxLine:
			l.partial, l.skipping = nil, !whole
			l.tooLong()
			continue
		case !whole:
			l.partial = append(l.partial, line...)
			continue
		case len(l.partial) > 0:
			l.partial = append(l.partial, line...)
			line = l.partial
		}
		if err := l.handle(line); err != nil {
			return 0, err
		}
		if l.partial = l.partial[:0]; cap(l.partial) > keepBuffer {
			l.partial = nil
		}
	}
	return n, nil
}

// tail is an io.Writer that keeps the last bytes of what a program complains.
type tail struct{ b []byte }

// tailSize is how much of it is kept.
const tailSize = 1024

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p[max(0, len(p)-tailSize):]...)
	if over := len(t.b) - tailSize; over > 0 {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// String is the last line.
func (t *tail) String() string {
	b := bytes.TrimSpace(t.b)
	return string(b[bytes.LastIndexByte(b, '\n')+1:])
}
