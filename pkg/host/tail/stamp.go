package tail

import (
	"bytes"
	"strconv"
	"time"
)

// stamp finds the time that a line itself gives: that of a container's log (CRI:
// "2026-12-01T00:37:11.123456789Z stdout F ..."), the "ts" of a JSON line, as the VPC
// CNI writes, or that of syslog's files ("Dec  1 00:37:11 node-a ..."). The last has
// neither zone nor year: it is read in the host's zone and as the last such day that
// is not after ref.
func stamp(line []byte, zone *time.Location, ref time.Time) (time.Time, bool) {
	const key = `"ts":"`
	first, _, _ := bytes.Cut(line[:min(len(line), 64)], []byte{' '})
	if t, ok := rfc3339(first); ok {
		return t, true
	}
	if len(line) == 0 || line[0] != '{' {
		return syslogStamp(line, zone, ref)
	}
	_, rest, ok := bytes.Cut(line[:min(len(line), 512)], []byte(key))
	if !ok {
		return time.Time{}, false
	}
	value, _, _ := bytes.Cut(rest, []byte{'"'})
	return rfc3339(value)
}

// syslogSlack is how far a clock may have been stepped back, or daylight saving may be
// misjudged, before a stamp after ref is taken for last year's.
const syslogSlack = 26 * time.Hour

func syslogStamp(line []byte, zone *time.Location, ref time.Time) (time.Time, bool) {
	if len(line) < len(time.Stamp)+1 || line[3] != ' ' || line[9] != ':' || line[len(time.Stamp)] != ' ' {
		return time.Time{}, false
	}
	// The year is parsed with the rest, since not every year has a February 29.
	year := ref.In(zone).Year()
	for _, y := range []int{year + 1, year, year - 1} {
		t, err := time.ParseInLocation("2006 "+time.Stamp, strconv.Itoa(y)+" "+string(line[:len(time.Stamp)]), zone)
		if err == nil && !t.After(ref.Add(syslogSlack)) {
			return t, true
		}
	}
	return time.Time{}, false
}

func rfc3339(b []byte) (time.Time, bool) {
	const shortest = len("2006-01-02T15:04:05Z")
	if len(b) < shortest || b[4] != '-' || b[10] != 'T' {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	return t, err == nil
}
