// Package detect turns the records of logs into findings: live in the agent, and
// over saved text in "node-agent replay". Both go through one Pipeline, so that what
// is found in a saved log is what would have been found on the node.
package detect

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Detector finds faults in the records of logs, which it gets in the order in which
// they were written. It is used by one goroutine at a time.
//
// A detector may hold a finding back until it knows more (the rest of an incident
// that takes several records, "not followed by OK"). It measures such windows with
// the clock of the records (Clock), never with the wall clock: a saved log is read
// in milliseconds, and a live one may be read late.
//
// Packages that implement it need not import this one.
type Detector interface {
	// Detect takes the next record and returns what is now known, in order. Of a
	// finding that Detect returns, fields that are the record's own (At, Boot, Origin,
	// Position, Evidence) may be left empty: the Pipeline fills them in. A finding
	// that was held back for later must hold those of the record that caused it.
	Detect(r host.Record) []health.Finding
	// Due is when something that was held back will have waited long enough, by the
	// clock of the records; zero when nothing is held back. The caller calls Flush
	// then, so that an idle log needs no timer.
	Due() time.Time
	// Flush returns what was held back and is due at now. A zero now is the end of
	// the log: everything that was held back is returned.
	Flush(now time.Time) []health.Finding
}

// Clock is the time by which windows are measured: the wall-clock time of the record
// when it is known, else its time since boot as an offset from the Unix epoch, else
// zero. Records with zero happen when the record before them happened.
func Clock(r host.Record) time.Time {
	switch {
	case !r.At.IsZero():
		return r.At
	case r.Monotonic != 0:
		return time.Unix(0, 0).UTC().Add(r.Monotonic)
	}
	return time.Time{}
}
