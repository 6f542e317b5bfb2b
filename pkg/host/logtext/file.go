package logtext

import (
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// Dress completes a record that is a line of a file: it takes off what the container
// runtime puts before a line, and finds the time and the identifier that the line
// itself holds. Of a line of the kernel in the system's log only the kernel's words
// are left. A time that the text does not hold stays as it was.
func Dress(r host.Record) host.Record {
	l := &line{rest: r.Message, rec: r}
	if m := criLine.FindStringSubmatch(l.rest); m != nil {
		r.At = parseISO(m[1])
		r.Message = l.rest[len(m[0]):]
		return r
	}
	y := &years{now: r.At}
	if y.now.IsZero() {
		y.now = time.Now().UTC()
	}
	if looksStamped(l.rest) {
		if identifier, ok := l.syslog(y); ok {
			r.Identifier, r.At = identifier, l.rec.At
			if identifier == "kernel" {
				l.dmesg()
				r.Message = l.rest
			}
			return r
		}
	}
	if at := y.own(r.Message); !at.IsZero() {
		r.At = at
	}
	return r
}

// looksStamped says cheaply whether a line can begin with a stamp of syslog.
func looksStamped(s string) bool {
	return len(s) > 16 && (s[0] >= '0' && s[0] <= '9' || s[0] >= 'A' && s[0] <= 'Z' || s[0] == '<') && strings.IndexByte(s[:16], ':') > 0
}
