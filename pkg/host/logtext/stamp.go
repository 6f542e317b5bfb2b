package logtext

import (
	"regexp"
	"strings"
	"time"
)

// isoStamp is RFC 3339 as programs write it: with or without a fraction, which may
// follow a comma, and with or without a colon in the zone.
const isoStamp = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)`

// dotStamp is what syslog and journalctl print; only dmesg has a comma.
const dotStamp = `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)`

// shortStamp is the stamp of syslog and of journalctl's short forms: no year, no zone.
const shortStamp = `[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d:\d\d(?:\.\d+)?`

// parseISO parses an isoStamp, zero when it is none.
func parseISO(s string) time.Time {
	s = strings.Replace(s, ",", ".", 1)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// years gives a year to stamps that have none: that of now, or the one before if the
// stamp would lie in the future. Such stamps have no zone either and are read as UTC.
type years struct {
	now  time.Time
	last time.Time
}

func (y *years) parse(layout, s string) time.Time {
	t, err := time.Parse(layout, s)
	if err != nil {
		return time.Time{}
	}
	t = time.Date(y.now.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
	if t.After(y.now.Add(24 * time.Hour)) {
		t = t.AddDate(-1, 0, 0)
	}
	if !y.last.IsZero() && t.Before(y.last.AddDate(0, -10, 0)) {
		t = t.AddDate(1, 0, 0) // the log went over New Year
	}
	y.last = t
	return t
}

func (y *years) short(s string) time.Time { return y.parse("Jan _2 15:04:05", s) }

var (
	klogHeader = regexp.MustCompile(`^[IWEF](\d{4} \d\d:\d\d:\d\d\.\d+) +\d+ `)
	jsonStamp  = regexp.MustCompile(`^\{[^{}]{0,200}?"(?:ts|time|timestamp)":"(` + isoStamp + `)"`)
	leadingISO = regexp.MustCompile(`^(?:time=")?(` + isoStamp + `)`)
)

// own returns the time that a service wrote into its own line, zero when none.
func (y *years) own(message string) time.Time {
	if m := klogHeader.FindStringSubmatch(message); m != nil {
		return y.parse("0102 15:04:05", m[1])
	}
	for _, re := range []*regexp.Regexp{jsonStamp, leadingISO} {
		if m := re.FindStringSubmatch(message); m != nil {
			return parseISO(m[1])
		}
	}
	return time.Time{}
}
