package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// NoticeKind is what a notice tells.
type NoticeKind string

// Kinds of notices. They are the "action" of Events.
const (
	Detected  NoticeKind = "Detected"
	WouldBe   NoticeKind = "WouldBe"
	Recovered NoticeKind = "Recovered"
)

// Notice is something to be told as one Event. Notices are kept in the store until
// Delivered is called, or until they are an hour old.
type Notice struct {
	// Key names the incident, and gives the Event its name: a notice with the same key
	// and kind is an update of the same Event.
	Key       string               `json:"key"`
	Kind      NoticeKind           `json:"kind"`
	Condition health.ConditionType `json:"condition,omitempty"`
	Reason    string               `json:"reason"`
	Subject   string               `json:"subject,omitempty"`
	Severity  health.Severity      `json:"severity"`
	// Message is one sentence; for Recovered it says what ended the fault.
	Message string `json:"message,omitempty"`
	// First and Last are when it was first and last seen, and Count how often.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count int       `json:"count"`
	// Created is when the notice was made.
	Created time.Time `json:"created"`
	// Pod is the pod that the fault hit or came from, nil for none. The Event is about
	// the Node, or when OnPod is set about the pod itself.
	Pod   *Pod `json:"pod,omitempty"`
	OnPod bool `json:"onPod,omitempty"`
}

const (
	maxOutbox    = 256
	noticeExpiry = time.Hour
	// tellEvery is how often a count that goes on rising is told.
	tellEvery = 5 * time.Minute
)

// tellBegin puts the notice of a new incident into the outbox.
func (l *Ledger) tellBegin(e *Entry, now time.Time) {
	kind := Detected
	if e.judgment.shadow {
		kind = WouldBe
	}
	l.tell(e, kind, e.Message, now)
}

// tellAgain tells of a count that rose: at 2, 10, 100 and so on, else at most every
// five minutes.
func (l *Ledger) tellAgain(e *Entry, now time.Time) {
	// Abs: the clock may have been stepped back.
	if e.Count <= e.Told || (e.Count < nextMilestone(e.Told) && now.Sub(e.ToldAt).Abs() < tellEvery) {
		return
	}
	l.tellBegin(e, now)
}

// tellEnd puts the notice that a fault is over into the outbox.
func (l *Ledger) tellEnd(e *Entry, now time.Time, how string) {
	l.tell(e, Recovered, describeEnd(how), now)
}

func (l *Ledger) tell(e *Entry, kind NoticeKind, message string, now time.Time) {
	n := Notice{
		Key: e.Key, Kind: kind, Condition: e.Condition, Reason: e.Reason, Subject: e.Subject,
		Severity: e.judgment.severity, Message: message, First: e.First, Last: e.Last, Count: e.Count, Created: now,
		Pod: e.Pod,
	}
	if kind == Recovered {
		n.Count = 1
	}
	e.Told, e.ToldAt = e.Count, now
	l.put(n)
}

// put puts a notice into the outbox, in the place of an older one about the same.
func (l *Ledger) put(n Notice) {
	i := slices.IndexFunc(l.state.Outbox, func(o Notice) bool { return o.Key == n.Key && o.Kind == n.Kind })
	if i >= 0 {
		n.Created = l.state.Outbox[i].Created
		l.state.Outbox[i] = n
		l.dirty = true
		l.notify()
		return
	}
	l.state.Outbox = append(l.state.Outbox, n)
	if n := len(l.state.Outbox) - maxOutbox; n > 0 {
		l.state.Outbox = slices.Delete(l.state.Outbox, 0, n)
	}
}

// nextMilestone is the count above told at which an Event is updated at once.
func nextMilestone(told int) int {
	if told < 2 {
		return 2
	}
	m := 10
	for m <= told {
		m *= 10
	}
	return m
}

// Pending returns what is to be told, the oldest first.
func (l *Ledger) Pending() []Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.state.Outbox)
}

// Delivered takes a notice out of the outbox: the API server has it, or never will.
// A notice that changed meanwhile stays, to be told as an update.
func (l *Ledger) Delivered(n Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.state.Outbox)
	l.state.Outbox = slices.DeleteFunc(l.state.Outbox, func(o Notice) bool {
		return o.Key == n.Key && o.Kind == n.Kind && o.Count <= n.Count
	})
	l.dirty = l.dirty || len(l.state.Outbox) != before
}

// expireOutbox drops what was not delivered within an hour.
func (l *Ledger) expireOutbox(now time.Time) {
	l.state.Outbox = slices.DeleteFunc(l.state.Outbox, func(n Notice) bool { return now.Sub(n.Created) > noticeExpiry })
}

// Text is the sentence of the notice: the subject, then what is wrong with it.
func (n Notice) Text() string {
	text := n.Message
	if text == "" {
		text = n.Reason
	}
	if n.Subject != "" && !strings.Contains(text, n.Subject) {
		text = n.Subject + ": " + text
	}
	if n.Pod != nil && !n.OnPod && n.Kind != Recovered {
		text += " (pod " + n.Pod.String() + ")"
	}
	return text
}
