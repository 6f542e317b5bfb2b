package ledger

import (
	"cmp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ekslogs/ekslogs/pkg/health"
)

const (
	maxEvidence = 1 << 10
	maxMessage  = 512
	maxSubject  = 256
	// maxEntries bounds the ledger against a source whose subjects never repeat.
	maxEntries = 512
)

// Entry is one fault that is there now, or, with ClearEvent, that happened within
// the last hour.
type Entry struct {
	Condition health.ConditionType `json:"condition,omitempty"`
	Reason    string               `json:"reason"`
	Subject   string               `json:"subject,omitempty"`
	// Severity is what the finding said; what it is worth is decided by the policy of
	// the day.
	Severity health.Severity `json:"severity"`
	Origin   health.Origin   `json:"origin,omitempty"`
	// Message and Evidence are those of the first sighting, so that what is written on
	// the Node does not change each time. Evidence is redacted and bounded.
	Message  string `json:"message,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	// First and Last are when it was first and last seen, by the node's wall clock.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
	// Boot is the boot in which it was last seen.
	Boot string `json:"boot,omitempty"`
	// Key names the incident for good: it gives the name of its Event.
	Key string `json:"key"`
	// Check is the check that found it; empty for faults found in logs, and then any
	// check that covers the reason can end it.
	Check string `json:"check,omitempty"`
	// Adopted says that it was taken over from the Node's own condition, so that its
	// subject is not known.
	Adopted bool `json:"adopted,omitempty"`
	// Reboots is how many reboots the same fault outlived or came back after.
	Reboots int `json:"reboots,omitempty"`
	// Pod is the pod of the first sighting, and Pods the UIDs of those that were told.
	Pod  *Pod     `json:"pod,omitempty"`
	Pods []string `json:"pods,omitempty"`
	// Told is the count that the Event shows, at ToldAt.
	Told   int       `json:"told,omitempty"`
	ToldAt time.Time `json:"toldAt"`

	clean    int
	judgment judged
}

// fatal reports whether the entry holds its condition False.
func (e *Entry) fatal() bool {
	return e.judgment.severity == health.Fatal && !e.judgment.shadow
}

// replace reports whether another reboot is pointless.
func (e *Entry) replace() bool { return e.Reboots >= 2 }

func (e *Entry) is(cond health.ConditionType, reason, subject string) bool {
	return e.Condition == cond && e.Reason == reason && e.Subject == subject
}

// byAge orders entries from the oldest; ties are broken so that the order never
// depends on chance.
func byAge(a, b *Entry) int {
	return cmp.Or(a.First.Compare(b.First), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Subject, b.Subject))
}

// byWorst puts what holds a condition False first, then by severity and age.
func byWorst(a, b *Entry) int {
	return cmp.Or(
		-cmp.Compare(a.judgment.severity.Rank(), b.judgment.severity.Rank()),
		byAge(a, b))
}

// clean returns at most limit bytes of s as one line of valid UTF-8 without control
// characters, which log text can hold and a terminal would obey.
func clean(s string, limit int) string {
	if len(s) > 4*limit {
		s = s[:4*limit]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	s = strings.TrimSpace(s)
	if len(s) <= limit {
		return s
	}
	const dots = "…"
	end := limit - len(dots)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + dots
}
