package journal

import (
	"strconv"
	"strings"
)

// cursor is a journal cursor taken apart: which entry of which journal
// (sd_journal_get_cursor(3); the parts are systemd's own business, and have been
// stable since 2012).
type cursor struct {
	seqnumID string // s: the journal's numbering
	seqnum   uint64 // i: the entry's number in it
	boot     string // b
	mono     string // m: microseconds since boot, hex
	real     uint64 // t: microseconds since 1970
	hash     string // x: of the entry's fields
}

func parseCursor(s string) (c cursor, ok bool) {
	for part := range strings.SplitSeq(s, ";") {
		key, value, _ := strings.Cut(part, "=")
		var err error
		switch key {
		case "s":
			c.seqnumID = value
		case "i":
			c.seqnum, err = strconv.ParseUint(value, 16, 64)
		case "b":
			c.boot = value
		case "m":
			c.mono = value
		case "t":
			c.real, err = strconv.ParseUint(value, 16, 64)
		case "x":
			c.hash = value
		}
		if err != nil {
			return cursor{}, false
		}
	}
	return c, c.boot != "" && c.mono != ""
}

// same says that both name one entry. Journald numbers entries anew when it moves
// them from /run to /var, so the number is no part of that.
func (c cursor) same(d cursor) bool {
	return c.boot == d.boot && c.mono == d.mono && c.real == d.real && c.hash == d.hash
}

// lost estimates how many entries lay between c, the last that was read, and next,
// the first one after it that the journal still has. It counts the entries of all
// units, since that is how journald numbers them. Where there is no common numbering
// it is 1, for "some", unless the machine has booted since: a volatile journal ends
// with its boot.
func (c cursor) lost(next cursor) uint64 {
	switch {
	case c.seqnumID == next.seqnumID && next.seqnum > c.seqnum:
		return next.seqnum - c.seqnum - 1
	case c.boot == next.boot:
		return 1
	}
	return 0
}
