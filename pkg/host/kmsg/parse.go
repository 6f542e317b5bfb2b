// Package kmsg reads the kernel's log from /dev/kmsg, one record at a time and
// without polling. The format is documented in Documentation/ABI/testing/dev-kmsg
// of the kernel's sources.
package kmsg

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Record is one record of /dev/kmsg, whole.
type Record struct {
	// Seq is the sequence number; it grows by one from record to record.
	Seq uint64
	// Priority is the syslog level, 0 (emergency) to 7 (debug).
	Priority int
	// Facility is the syslog facility: 0 for the kernel, and never 0 for what user
	// space wrote.
	Facility int
	// Monotonic is the time since boot by the kernel's local clock.
	Monotonic time.Duration
	// Flag is '-' for a whole line, 'c' for a fragment of one and, in kernels before
	// 4.9, '+' for the fragments that follow. Fragments are records of their own.
	Flag byte
	// Caller is the thread ("T123") or CPU ("C4") that printed it, when the kernel
	// says so (CONFIG_PRINTK_CALLER).
	Caller string
	// Message is the text, escapes decoded.
	Message string
	// Keys is the dictionary (SUBSYSTEM, DEVICE), nil when there is none.
	Keys map[string]string
}

// errFormat is what a malformed record is told with.
var errFormat = errors.New(`not a record of /dev/kmsg, which look like "6,1234,567890,-;text"`)

// Parse parses one record as read(2) returns it: the prefix "prio,seq,usec,flag" with
// whatever fields later kernels append, a semicolon, the message to the end of the
// line, and dictionary lines that begin with a space. It keeps no reference to b.
func Parse(b []byte) (Record, error) {
	head, body, ok := bytes.Cut(b, []byte{';'})
	if !ok {
		return Record{}, errFormat
	}
	r := Record{Flag: '-'}
	for i := 0; ; i++ {
		field, rest, more := bytes.Cut(head, []byte{','})
		if err := r.prefix(i, field); err != nil {
			return Record{}, err
		}
		if !more {
			if i < 2 {
				return Record{}, errFormat
			}
			break
		}
		head = rest
	}
	message, dict, _ := bytes.Cut(body, []byte{'\n'})
	r.Message = unescape(message)
	for len(dict) > 0 {
		var line []byte
		line, dict, _ = bytes.Cut(dict, []byte{'\n'})
		if len(line) == 0 || line[0] != ' ' {
			continue
		}
		key, value, ok := bytes.Cut(line[1:], []byte{'='})
		if !ok {
			continue
		}
		if r.Keys == nil {
			r.Keys = make(map[string]string, 2)
		}
		r.Keys[unescape(key)] = unescape(value)
	}
	return r, nil
}

// prefix takes the field at position i of a record's prefix.
func (r *Record) prefix(i int, field []byte) error {
	switch i {
	case 0:
		n, err := strconv.ParseUint(string(field), 10, 31)
		if err != nil {
			return fmt.Errorf("priority %q: %w", field, errFormat)
		}
		r.Priority, r.Facility = int(n&7), int(n>>3)
	case 1:
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil {
			return fmt.Errorf("sequence number %q: %w", field, errFormat)
		}
		r.Seq = n
	case 2:
		n, err := strconv.ParseUint(string(field), 10, 63)
		if err != nil || n > uint64(1<<63-1)/1000 {
			return fmt.Errorf("timestamp %q: %w", field, errFormat)
		}
		r.Monotonic = time.Duration(n) * time.Microsecond
	case 3:
		if len(field) > 0 {
			r.Flag = field[0]
		}
	default:
		if caller, ok := bytes.CutPrefix(field, []byte("caller=")); ok {
			r.Caller = string(caller)
		}
	}
	return nil
}

// unescape decodes the \xNN by which the kernel writes what is not printable ASCII,
// and the backslash itself. Anything else after a backslash stays as it is.
func unescape(b []byte) string {
	i := bytes.Index(b, []byte(`\x`))
	if i < 0 {
		return string(b)
	}
	var out strings.Builder
	out.Grow(len(b))
	for i >= 0 {
		out.Write(b[:i])
		if v, ok := hexByte(b[i+2:]); ok {
			out.WriteByte(v)
			b = b[i+4:]
		} else {
			out.WriteString(`\x`)
			b = b[i+2:]
		}
		i = bytes.Index(b, []byte(`\x`))
	}
	out.Write(b)
	return out.String()
}

func hexByte(b []byte) (byte, bool) {
	if len(b) < 2 {
		return 0, false
	}
	hi, ok1 := nibble(b[0])
	lo, ok2 := nibble(b[1])
	return hi<<4 | lo, ok1 && ok2
}

func nibble(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
