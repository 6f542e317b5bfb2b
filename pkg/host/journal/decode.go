package journal

import (
	"bytes"
	"errors"
)

var errJSON = errors.New("not a line of journalctl -o json")

// decoder reads the JSON that journalctl writes: one flat object a line, whose values
// are strings, null, arrays of numbers (a field with bytes that are not text) or
// arrays of such (a field that was given several times; the first counts). A general
// decoder takes several times as long, which is what a node would pay for each line
// that its kubelet logs.
type decoder struct {
	line    []byte
	pos     int
	scratch []byte
}

// decode fills e from a line. A value of another kind than journalctl writes is
// skipped; what is not an object is an error.
func (d *decoder) decode(line []byte, e *entry) error {
	d.line, d.pos, d.scratch = line, 0, d.scratch[:0]
	*e = entry{}
	if !d.eat('{') {
		return errJSON
	}
	if d.eat('}') {
		return nil
	}
	for {
		key, ok := d.str()
		if !ok || !d.eat(':') {
			return errJSON
		}
		if dst := e.field(key); dst != nil {
			*dst, ok = d.value()
		} else {
			ok = d.skip()
		}
		if !ok {
			return errJSON
		}
		if d.eat(',') {
			continue
		}
		if d.eat('}') {
			return nil
		}
		return errJSON
	}
}

// eat takes white space, and c if it follows.
func (d *decoder) eat(c byte) bool {
	if d.peek() != c {
		return false
	}
	d.pos++
	return true
}

// peek takes white space and returns the byte that follows, 0 at the end.
func (d *decoder) peek() byte {
	for d.pos < len(d.line) {
		switch c := d.line[d.pos]; c {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return c
		}
	}
	return 0
}

// raw takes a string and returns what lies between its quotes, and whether there are
// escapes in it.
func (d *decoder) raw() (b []byte, escaped, ok bool) {
	if !d.eat('"') {
		return nil, false, false
	}
	start := d.pos
	for {
		i := bytes.IndexByte(d.line[d.pos:], '"')
		if i < 0 {
			return nil, false, false
		}
		end := d.pos + i
		d.pos = end + 1
		slashes := 0
		for end-slashes > start && d.line[end-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			b = d.line[start:end]
			return b, bytes.IndexByte(b, '\\') >= 0, true
		}
	}
}

// str takes a string.
func (d *decoder) str() ([]byte, bool) {
	b, escaped, ok := d.raw()
	if !ok || !escaped {
		return b, ok
	}
	start := len(d.scratch)
	d.scratch = appendUnescaped(d.scratch, b)
	return d.scratch[start:], true
}

// value takes the value of a field that is used.
func (d *decoder) value() ([]byte, bool) {
	switch d.peek() {
	case '"':
		return d.str()
	case '[':
		return d.array()
	}
	return nil, d.skip()
}

// array takes bytes given as numbers, or the first of several values.
func (d *decoder) array() ([]byte, bool) {
	d.pos++
	start := len(d.scratch)
	var first []byte
	for n := 0; ; n++ {
		if n == 0 && d.eat(']') {
			return nil, true
		}
		switch c := d.peek(); {
		case c >= '0' && c <= '9':
			v := 0
			for d.pos < len(d.line) && d.line[d.pos] >= '0' && d.line[d.pos] <= '9' {
				v = min(v*10+int(d.line[d.pos]-'0'), 1<<16)
				d.pos++
			}
			if v > 255 {
				return nil, false
			}
			d.scratch = append(d.scratch, byte(v))
			first = d.scratch[start:]
		case n == 0 && (c == '"' || c == '['):
			var ok bool
			if first, ok = d.value(); !ok {
				return nil, false
			}
		default:
			if !d.skip() {
				return nil, false
			}
		}
		if d.eat(']') {
			return first, true
		}
		if !d.eat(',') {
			return nil, false
		}
	}
}

// skip takes any value.
func (d *decoder) skip() bool {
	depth := 0
	for {
		switch d.peek() {
		case 0:
			return false
		case '"':
			if _, _, ok := d.raw(); !ok {
				return false
			}
		case '[', '{':
			depth++
			d.pos++
			continue
		case ']', '}':
			if depth--; depth < 0 {
				return false
			}
			d.pos++
		case ',', ':':
			if depth == 0 {
				return false
			}
			d.pos++
			continue
		default: // a number or a word
			for d.pos < len(d.line) && !bytes.ContainsRune([]byte(`,:]}[{" `+"\t\r\n"), rune(d.line[d.pos])) {
				d.pos++
			}
		}
		if depth == 0 {
			return true
		}
	}
}
