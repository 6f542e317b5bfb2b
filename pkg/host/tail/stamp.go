package tail

import (
	"bytes"
	"time"
)

// stamp finds the time that a line itself gives: that of a container's log (CRI:
// "2026-12-01T00:37:11.123456789Z stdout F ..."), or the "ts" of a JSON line, as the
// VPC CNI writes. Stamps without a year or a zone are left to whoever knows the
// program that wrote them.
func stamp(line []byte) (time.Time, bool) {
	const key = `"ts":"`
	first, _, _ := bytes.Cut(line[:min(len(line), 64)], []byte{' '})
	if t, ok := rfc3339(first); ok {
		return t, true
	}
	if len(line) == 0 || line[0] != '{' {
		return time.Time{}, false
	}
	_, rest, ok := bytes.Cut(line[:min(len(line), 512)], []byte(key))
	if !ok {
		return time.Time{}, false
	}
	value, _, _ := bytes.Cut(rest, []byte{'"'})
	return rfc3339(value)
}

func rfc3339(b []byte) (time.Time, bool) {
	const shortest = len("2006-01-02T15:04:05Z")
	if len(b) < shortest || b[4] != '-' || b[10] != 'T' {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	return t, err == nil
}
