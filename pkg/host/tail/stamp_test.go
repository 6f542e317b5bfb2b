package tail

import (
	"testing"
	"time"
)

func TestStamp(t *testing.T) {
	utc := func(y int, m time.Month, d, h, min, s int) time.Time {
		return time.Date(y, m, d, h, min, s, 0, time.UTC)
	}
	berlin := time.FixedZone("CET", 3600)
	ref := utc(2027, 1, 1, 0, 5, 0)
	for name, tc := range map[string]struct {
		line string
		zone *time.Location
		want time.Time
	}{
		"container":                  {"2026-12-01T00:37:11.5Z stdout F hello", time.UTC, utc(2026, 12, 1, 0, 37, 11).Add(time.Second / 2)},
		"container with an offset":   {"2026-12-01T01:37:11+01:00 stderr P x", time.UTC, utc(2026, 12, 1, 0, 37, 11)},
		"VPC CNI":                    {`{"level":"error","ts":"2021-12-02T03:34:46.000Z","msg":"x"}`, time.UTC, utc(2021, 12, 2, 3, 34, 46)},
		"syslog of this year":        {"Jan  1 00:00:01 node-a CROND[2]: x", time.UTC, utc(2027, 1, 1, 0, 0, 1)},
		"syslog of last year":        {"Dec 31 23:59:01 node-a CROND[1]: x", time.UTC, utc(2026, 12, 31, 23, 59, 1)},
		"syslog in the host's zone":  {"Dec 31 23:59:01 node-a CROND[1]: x", berlin, utc(2026, 12, 31, 22, 59, 1)},
		"syslog of a clock set back": {"Jan  1 01:00:00 node-a x", time.UTC, utc(2027, 1, 1, 1, 0, 0)},
		"leap day":                   {"Feb 29 01:00:00 node-a x", time.UTC, time.Time{}},
		"none":                       {"hello world, this is a line", time.UTC, time.Time{}},
		"empty":                      {"", time.UTC, time.Time{}},
		"json without ts":            {`{"msg":"x"}`, time.UTC, time.Time{}},
		"month of no calendar":       {"Foo  1 00:00:01 node-a x", time.UTC, time.Time{}},
	} {
		got, ok := stamp([]byte(tc.line), tc.zone, ref)
		if !got.Equal(tc.want) || ok == tc.want.IsZero() {
			t.Errorf("%s: %v, %v, want %v", name, got, ok, tc.want)
		}
	}
}

func FuzzStamp(f *testing.F) {
	f.Add([]byte("Jan  1 00:00:01 node-a CROND[2]: x"))
	f.Add([]byte(`{"ts":"2021-12-02T03:34:46.000Z"}`))
	f.Fuzz(func(t *testing.T, line []byte) { stamp(line, time.UTC, time.Unix(1796078000, 0)) })
}
