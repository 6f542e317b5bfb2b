package journal

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// entry holds the fields of one line of "journalctl -o json" that we use. They lie in
// the line or in the decoder's scratch space, until the next call.
type entry struct {
	cursor, realtime, monotonic             []byte
	message, priority, facility, identifier []byte
	transport, systemdUnit, unit            []byte
	pid, boot, device, subsystem            []byte
}

// field returns where the value of a key goes, nil for one that is not used.
func (e *entry) field(key []byte) *[]byte {
	switch string(key) { // no allocation
	case "MESSAGE":
		return &e.message
	case "__CURSOR":
		return &e.cursor
	case "__REALTIME_TIMESTAMP":
		return &e.realtime
	case "__MONOTONIC_TIMESTAMP":
		return &e.monotonic
	case "PRIORITY":
		return &e.priority
	case "SYSLOG_FACILITY":
		return &e.facility
	case "SYSLOG_IDENTIFIER":
		return &e.identifier
	case "_TRANSPORT":
		return &e.transport
	case "_SYSTEMD_UNIT":
		return &e.systemdUnit
	case "UNIT":
		return &e.unit
	case "_PID":
		return &e.pid
	case "_BOOT_ID":
		return &e.boot
	case "_KERNEL_DEVICE":
		return &e.device
	case "_KERNEL_SUBSYSTEM":
		return &e.subsystem
	}
	return nil
}

// outputFields is what journalctl is asked for. It adds the fields that begin with
// two underscores by itself.
const outputFields = "MESSAGE,PRIORITY,SYSLOG_FACILITY,SYSLOG_IDENTIFIER,_TRANSPORT," +
	"_SYSTEMD_UNIT,UNIT,_PID,_BOOT_ID,_KERNEL_DEVICE,_KERNEL_SUBSYSTEM"

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

// appendUnescaped appends the text of a JSON string. A malformed escape stays as it is.
func appendUnescaped(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || i+1 >= len(b) {
			return append(dst, b...)
		}
		dst = append(dst, b[:i]...)
		c := b[i+1]
		b = b[i+2:]
		switch c {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'u':
			var r rune
			var ok bool
			if r, b, ok = hexRune(b); !ok {
				dst = append(dst, '\\', 'u')
				continue
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, '\\', c)
		}
	}
}

// hexRune takes the four digits after \u, and the other half of a surrogate pair.
func hexRune(b []byte) (rune, []byte, bool) {
	r, ok := hex4(b)
	if !ok {
		return 0, b, false
	}
	b = b[4:]
	if utf16.IsSurrogate(r) {
		if len(b) >= 6 && b[0] == '\\' && b[1] == 'u' {
			if low, ok := hex4(b[2:]); ok {
				if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
					return full, b[6:], true
				}
			}
		}
		return utf8.RuneError, b, true
	}
	return r, b, true
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}
