// Package incident reads the faults that a log tells in several lines, or by their
// rate: one file a subject. What a single line says is a rule's (package rule).
//
// Wordings are those of the kernels since 3.10; the comments name the source files
// that print them. Patterns are anchored at the start of a line wherever the kernel's
// words stand there, because names of tasks and files, which anybody chooses, follow.
package incident

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Detector is a detect.Detector that says which lines it is for.
type Detector interface {
	// Literals are strings of which one occurs in every line that the detector wants.
	Literals() []string
	// Sources are the logs that it wants lines of. Those of the kernel come with
	// SourceKmsg, wherever they were read.
	Sources() []host.Source
	Detect(r host.Record) []health.Finding
	Due() time.Time
	Flush(now time.Time) []health.Finding
}

// Options are what the detectors must know about the node.
type Options struct {
	// Critical says whether a filesystem that the node itself needs is on a block
	// device (nvme0n1p1). When nil, or for devices that it does not know, all are.
	Critical func(device string) (critical, known bool)
}

// All returns one detector of each kind, with no state.
func All(o Options) []Detector {
	return []Detector{
		newOOM(), &pids{}, newOops(), newRCU(), newHardware(), newAER(), newCron(),
		newBlock(), newFilesystem(o), newNVMe(), newNFS(),
		newUnits(), newProbes(), newIPAMD(),
	}
}

// kernelLog is the Sources of detectors for the kernel's words.
var kernelLog = []host.Source{host.SourceKmsg}

// epoch is the time of records that have none: the first instant that is not zero.
var epoch = time.Unix(0, 0).UTC()

// clock is the time of the records, for records that come in order.
type clock struct{ last time.Time }

// now returns the time of a record; one without time happened when the one before did.
func (c *clock) now(r host.Record) time.Time {
	switch {
	case !r.At.IsZero():
		c.last = r.At
	case r.Monotonic != 0:
		c.last = epoch.Add(r.Monotonic)
	case c.last.IsZero():
		c.last = epoch
	}
	return c.last
}

// blockTime is how long the lines of one report of the kernel take at most: they are
// printed at once, a few milliseconds apart on a slow console.
const blockTime = 50 * time.Millisecond

// finding makes a finding of a record.
func finding(r host.Record, condition health.ConditionType, severity health.Severity, reason, subject, message string, fields map[string]any) health.Finding {
	origin := health.OriginService
	switch {
	case r.Kernel:
		origin = health.OriginKernel
	case r.Source == host.SourceKmsg:
		origin = health.OriginUserspace
	}
	return health.Finding{
		Origin: origin, Reason: reason, Severity: severity, Condition: condition,
		Subject: subject, Message: message, Fields: fields,
		At: r.At, Boot: r.Boot, Position: r.Position, Evidence: r.Message,
	}
}

// groups returns the named groups that take part in the first match, nil for none.
func groups(re *regexp.Regexp, s string) map[string]string {
	m := re.FindStringSubmatch(s)
	if m == nil {
		return nil
	}
	out := map[string]string{}
	for i, name := range re.SubexpNames() {
		if name != "" && m[i] != "" {
			out[name] = m[i]
		}
	}
	return out
}

// fieldsOf makes fields of groups: those named in ints as int64, the others as text
// that is fit for an API object.
func fieldsOf(g map[string]string, ints ...string) map[string]any {
	out := make(map[string]any, len(g))
	for name, v := range g {
		out[name] = clean(v)
	}
	for _, name := range ints {
		if v, ok := g[name]; ok {
			delete(out, name)
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				out[name] = n
			}
		}
	}
	return out
}

// maxText bounds a value that comes from a log, in bytes.
const maxText = 256

// clean makes text from a log fit for an API object: valid UTF-8, no control
// characters, bounded.
func clean(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxText)], "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return -1
		}
		return r
	}, s))
}
