package collect

import (
	"bytes"
	"io"
)

// tailStart drops the beginning of a tail: the rest of a line, and lines that look
// like the inside of a private key whose first line was left out.
type tailStart struct {
	out  io.Writer
	line []byte
	part bool // the first, broken line is over
	done bool
}

const maxKeyLine = 80

func (t *tailStart) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && !t.done {
		i := bytes.IndexByte(p, '\n')
		piece := p
		if i >= 0 {
			piece = p[:i+1]
		}
		if t.part {
			t.line = append(t.line, piece[:min(len(piece), maxKeyLine+2)]...)
		}
		p = p[len(piece):]
		switch {
		case !t.part:
			t.part = i >= 0
		case len(t.line) > maxKeyLine || i >= 0 && !keyLine(t.line):
			t.done = true
			if _, err := t.out.Write(t.line); err != nil {
				return 0, err
			}
			if rest := piece[min(len(piece), maxKeyLine+2):]; len(rest) > 0 {
				if _, err := t.out.Write(rest); err != nil {
					return 0, err
				}
			}
		case i >= 0:
			t.line = t.line[:0]
		}
	}
	if len(p) > 0 {
		if _, err := t.out.Write(p); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// flush writes a last line that has no newline.
func (t *tailStart) flush() error {
	if t.done || len(t.line) == 0 || keyLine(t.line) {
		return nil
	}
	_, err := t.out.Write(t.line)
	return err
}

func keyLine(line []byte) bool {
	line = bytes.TrimSpace(line)
	for _, c := range line {
		ok := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '='
		if !ok {
			return false
		}
	}
	return len(line) > 16
}
