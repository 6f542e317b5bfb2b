package ledger

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

const (
	// eventQuiet is how long after its last sighting an event is forgotten, so that
	// the next one is a new incident.
	eventQuiet = time.Hour
	// staleFirst and staleLater are how old a Warning may be to be worth an Event: at
	// a first start the log of the whole boot is read.
	staleFirst = 10 * time.Minute
	staleLater = time.Hour
)

// Outcome is what became of a finding.
type Outcome struct {
	// Counted is false for what had been counted before, and for disabled reasons.
	Counted bool
	// New says that it began an incident.
	New bool
	// Severity is what it is worth under the policy.
	Severity health.Severity
	// Shadow says that it would have turned the condition, but for shadow mode.
	Shadow bool
}

// Observe takes a finding from a log. When it returns, a new incident is in the
// store, so that the source may move its checkpoint.
func (l *Ledger) Observe(f health.Finding) Outcome {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	before := len(l.state.Outbox)
	out := l.observe(f, "", now)
	switch {
	case out.New || f.Clears || len(l.state.Outbox) != before:
		l.settle(now)
	case out.Counted:
		l.dirty = true
		l.notify()
	}
	return out
}

func (l *Ledger) observe(f health.Finding, check string, now time.Time) Outcome {
	if f.Subject = clean(f.Subject, maxSubject); f.Reason == "" {
		return Outcome{}
	}
	f.Boot = bootID(f.Boot)
	if f.Position != "" && !l.state.Seen.add(f.Position+"\x00"+f.Reason+"\x00"+f.Subject) {
		return Outcome{}
	}
	if f.Clears {
		l.driverClears(f, now)
		return Outcome{Counted: true, Severity: health.Info}
	}
	j := l.policy.judge(l.opts.Catalog, f.Reason, f.Severity, f.Condition, f.Origin)
	if j.disabled {
		return Outcome{}
	}
	out := Outcome{Counted: true, Severity: j.severity, Shadow: j.shadow}
	if l.onlyHistory(f, j, now) {
		l.remember(newEntry(f, check, j, now, l), now, "before the agent's start")
		return out
	}
	e := l.find(f.Condition, f.Reason, f.Subject)
	if e == nil {
		e = l.adoptedAs(f)
	}
	if e != nil {
		l.again(e, f, check, j, now)
		l.tellPod(e, f, now)
		return out
	}
	e = newEntry(f, check, j, now, l)
	e.Reboots = l.state.relapses(e)
	l.makeRoom(now)
	l.state.Entries = append(l.state.Entries, e)
	out.New = true
	if j.severity != health.Info {
		l.tellBegin(e, now)
		l.tellPod(e, f, now)
	}
	return out
}

// onlyHistory reports whether a finding is too old to act upon: a Warning that is
// long past, or a fault that a boot since then has ended.
func (l *Ledger) onlyHistory(f health.Finding, j judged, now time.Time) bool {
	if j.severity == health.Fatal {
		return f.Boot != "" && l.opts.Boot != "" && f.Boot != l.opts.Boot && j.rule.endsAtReboot()
	}
	limit := staleLater
	if l.fresh {
		limit = staleFirst
	}
	return j.rule.Kind == ClearEvent && !f.At.IsZero() && now.Sub(f.At) > limit
}

func newEntry(f health.Finding, check string, j judged, now time.Time, l *Ledger) *Entry {
	first := now
	if !f.At.IsZero() && f.At.Before(now) {
		first = f.At.UTC()
	}
	boot := f.Boot
	if boot == "" {
		boot = l.opts.Boot
	}
	key := f.Position
	if key == "" {
		key = "seen/" + strconv.FormatInt(now.UnixNano(), 36)
	}
	return &Entry{
		Condition: f.Condition, Reason: f.Reason, Subject: f.Subject, Severity: f.Severity, Origin: f.Origin,
		Message: clean(f.Message, maxMessage), Evidence: clean(l.opts.Redact(f.Evidence), maxEvidence),
		First: seconds(first), Last: seconds(first), Count: 1, Boot: boot,
		Key: key + "/" + f.Subject, Check: check, Pod: podOf(f), judgment: j,
	}
}

// again counts one more sighting of a fault that is known.
func (l *Ledger) again(e *Entry, f health.Finding, check string, j judged, now time.Time) {
	worse := f.Severity.Rank() > e.Severity.Rank()
	e.Count++
	e.clean = 0
	e.Last = seconds(now)
	if boot := l.opts.Boot; boot != "" && e.Boot != boot && (f.Boot == "" || f.Boot == boot) {
		// It outlived a boot.
		e.Boot = boot
		e.Reboots++
	}
	if check != "" {
		e.Check = check
	}
	if e.Message == "" || worse {
		e.Message = clean(f.Message, maxMessage)
	}
	if worse {
		// The same incident is found to be worse: told anew, with what shows it.
		e.Severity, e.Origin, e.judgment = f.Severity, f.Origin, j
		e.Evidence = clean(l.opts.Redact(f.Evidence), maxEvidence)
		e.Key = fmt.Sprintf("%s/%s", e.Key, j.severity)
		e.Told, e.ToldAt = 0, time.Time{}
		l.tellBegin(e, now)
		return
	}
	if j.severity != health.Info {
		l.tellAgain(e, now)
	}
}

// adoptedAs finds the fault that was taken over from the Node's condition, without
// a subject, when the finding says what its subject is.
func (l *Ledger) adoptedAs(f health.Finding) *Entry {
	for _, e := range l.state.Entries {
		if e.Adopted && e.Condition == f.Condition && e.Reason == f.Reason && e.Subject == "" {
			e.Subject, e.Adopted = f.Subject, false
			e.Evidence = clean(l.opts.Redact(f.Evidence), maxEvidence)
			return e
		}
	}
	return nil
}

// bootID writes a boot id as the journal does, without the dashes of the kernel.
func bootID(id string) string { return strings.ReplaceAll(id, "-", "") }

// makeRoom drops the entry that matters least when the ledger is full.
func (l *Ledger) makeRoom(now time.Time) {
	if len(l.state.Entries) < maxEntries {
		return
	}
	worst := slices.MinFunc(l.state.Entries, func(a, b *Entry) int {
		if a.fatal() != b.fatal() {
			if b.fatal() {
				return -1
			}
			return 1
		}
		return a.Last.Compare(b.Last)
	})
	l.end(worst, now, "too many faults to keep", false)
}
