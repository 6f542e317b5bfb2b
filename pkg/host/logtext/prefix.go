package logtext

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// line is a line while its prefixes are taken off.
type line struct {
	rest string
	// kernel says that what was taken off so far is what the kernel's log has.
	kernel bool
	// indents says that the tool that printed the line indents the further lines of a
	// record.
	indents bool
	rec     host.Record
}

var (
	priorityTag = regexp.MustCompile(`^<(\d{1,3})>`)
	decoded     = regexp.MustCompile(`^(kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|res\d+|local\d) *:(emerg|alert|crit|err|warn|notice|info|debug) *: `)
	uptime      = regexp.MustCompile(`^\[ *(\d{1,10})\.(\d{1,9})\] ?`)
	dmesgTime   = regexp.MustCompile(`^\[([A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\] ?`)
	dmesgDelta  = regexp.MustCompile(`^\[ *(?:\+\d+\.\d+|[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4} < *[+\d.]+>)\] ?`)
	dmesgISO    = regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d+(?:Z|[+-]\d\d:?\d\d)) `)
	callerTag   = regexp.MustCompile(`^\[ *[TC]\d+\] ?`)
	syslogISO   = regexp.MustCompile(`^(?:<\d+>)?(` + dotStamp + `) (\S+) ([^\s:\[\]]+)(?:\[(\d+)\])?: ?`)
	syslogShort = regexp.MustCompile(`^(?:<\d+>)?(` + shortStamp + `) (?:(\S+) )?([^\s:\[\]]+)(?:\[(\d+)\])?: ?`)
	syslogFull  = regexp.MustCompile(`^[A-Z][a-z]{2} (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) ([A-Z]{1,5}|[+-]\d{2,4}) (\S+) ([^\s:\[\]]+)(?:\[(\d+)\])?: ?`)
	syslogUnix  = regexp.MustCompile(`^(\d{9,11}\.\d{6}) (\S+) ([^\s:\[\]]+)(?:\[(\d+)\])?: ?`)
	syslog5424  = regexp.MustCompile(`^<\d{1,3}>1 (` + dotStamp + `) (\S+) (\S+) \S+ \S+ (?:-|\[[^\]]*\]) ?`)
	monoService = regexp.MustCompile(`^(?:\S+ )?([A-Za-z][\w.@()-]*)\[(\d+)\]: `)
	monoKernel  = regexp.MustCompile(`^\S+ kernel: `)
	// journald and syslogd tell emergencies to all terminals: " kernel:text".
	bareKernel  = regexp.MustCompile(`^(?:kernel: | ?kernel:)`)
	bareService = regexp.MustCompile(`^(?:([A-Za-z][\w.@()-]*)\[(\d+)\]|(systemd)): `)
	crashWords  = regexp.MustCompile(`^(?:segfault at|undefined instruction: pc=|unhandled |bad frame|potentially unexpected|general protection|trap )`)
	criLine     = regexp.MustCompile(`^(` + isoStamp + `) (stdout|stderr) [FP] `)
	eventRow    = regexp.MustCompile(`^(?:Warning|Normal) +\w+ +(?:\d+[smhdy])+(?: \(x\d+ over (?:\d+[smhdy])+\))? +([a-z][\w./-]*)(?:, \S+)? +`)
)

var levels = map[string]int{"emerg": 0, "alert": 1, "crit": 2, "err": 3, "warn": 4, "notice": 5, "info": 6, "debug": 7}

// dmesg takes off what dmesg and pstore put before the kernel's words.
func (l *line) dmesg() {
	for range 2 {
		if m := priorityTag.FindStringSubmatch(l.rest); m != nil {
			n, _ := strconv.Atoi(m[1]) // three digits
			l.priority(n&7, n>>3)
			l.cut(len(m[0]))
		}
		if m := decoded.FindStringSubmatch(l.rest); m != nil {
			facility := 1
			if m[1] == "kern" {
				facility = 0
			}
			l.priority(levels[m[2]], facility)
			l.cut(len(m[0]))
		}
		if m := dmesgISO.FindStringSubmatch(l.rest); m != nil {
			l.rec.At = parseISO(m[1])
			l.stamp(len(m[0]))
		}
		if m := uptime.FindStringSubmatch(l.rest); m != nil {
			sec, _ := strconv.ParseInt(m[1], 10, 64) // ten digits
			frac, _ := strconv.ParseInt((m[2] + "000000000")[:9], 10, 64)
			l.rec.Monotonic = time.Duration(sec)*time.Second + time.Duration(frac)
			l.stamp(len(m[0]))
		} else if m := dmesgTime.FindStringSubmatch(l.rest); m != nil {
			if t, err := time.Parse(time.ANSIC, m[1]); err == nil {
				l.rec.At = t
			}
			l.stamp(len(m[0]))
		} else if m := dmesgDelta.FindString(l.rest); m != "" {
			l.stamp(len(m))
		}
		if m := callerTag.FindString(l.rest); m != "" && l.kernel {
			l.cut(len(m))
		}
		if m := bareKernel.FindString(l.rest); m != "" {
			l.kernel = true
			l.cut(len(m))
			continue
		}
		return
	}
}

func (l *line) cut(n int) { l.rest = l.rest[n:] }

func (l *line) stamp(n int) {
	l.kernel, l.indents = true, true
	l.cut(n)
}

func (l *line) priority(priority, facility int) {
	l.rec.Priority, l.rec.Facility = priority, facility
	l.kernel = true
}

// syslog takes off stamp, host and identifier, and says whether they were there.
func (l *line) syslog(y *years) (identifier string, ok bool) {
	if m := syslogISO.FindStringSubmatch(l.rest); m != nil {
		l.rec.At = parseISO(m[1])
		l.cut(len(m[0]))
		l.indents = true
		return m[3], true
	}
	if m := syslogShort.FindStringSubmatch(l.rest); m != nil {
		l.rec.At = y.short(m[1])
		l.cut(len(m[0]))
		l.indents = true
		return m[3], true
	}
	return l.otherSyslog()
}

// otherSyslog takes off the rarer forms: journalctl's short-full, with-unit and
// short-unix, and RFC 5424.
func (l *line) otherSyslog() (identifier string, ok bool) {
	cut := func(m []string, at time.Time, identifier string) (string, bool) {
		l.rec.At = at
		l.cut(len(m[0]))
		l.indents = true
		return identifier, true
	}
	if m := syslogFull.FindStringSubmatch(l.rest); m != nil {
		at, err := time.Parse("2006-01-02 15:04:05 MST", m[1]+" "+m[2])
		if err != nil {
			at, _ = time.Parse("2006-01-02 15:04:05 -0700", m[1]+" "+m[2]) // zero when it is neither
		}
		return cut(m, at.UTC(), m[4])
	}
	if m := syslogUnix.FindStringSubmatch(l.rest); m != nil {
		sec, frac, _ := strings.Cut(m[1], ".")
		s, _ := strconv.ParseInt(sec, 10, 64)   // eleven digits
		us, _ := strconv.ParseInt(frac, 10, 64) // six digits
		return cut(m, time.Unix(s, us*1000).UTC(), m[3])
	}
	if m := syslog5424.FindStringSubmatch(l.rest); m != nil {
		return cut(m, parseISO(m[1]), m[3])
	}
	return "", false
}

// service takes off an identifier with a pid. after says that a stamp of the kernel's
// log came before, as in "journalctl -o short-monotonic", where a host may be between.
// What the kernel says of a crash looks alike: "nginx[77]: segfault at 0 ip ...".
func (l *line) service(after bool) (identifier string, ok bool) {
	re := bareService
	if after {
		re = monoService
	}
	m := re.FindStringSubmatch(l.rest)
	if m == nil || crashWords.MatchString(l.rest[len(m[0]):]) {
		return "", false
	}
	l.cut(len(m[0]))
	return strings.Join(append(m[1:2], m[3:]...), ""), true
}
