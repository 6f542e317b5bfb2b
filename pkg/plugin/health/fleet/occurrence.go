package fleet

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// Sources of occurrences.
const (
	// SourceEvent is an Event of the cluster, which is gone after an hour unless the
	// API server keeps Events longer.
	SourceEvent = "event"
	// SourceAnnotation is the agent's own memory on the Node.
	SourceAnnotation = "annotation"
)

// Occurrence is something that happened on a node: from an Event or the annotation.
type Occurrence struct {
	Node string
	// Reason is a code of the catalogue, whoever wrote it.
	Reason string
	// Severity is Fatal, Warning or Info. Events tell only Warning and Info (Normal).
	Severity string
	Subject  string
	Message  string
	// First and Last are when it was first and last seen, End when it was over; zero
	// when it lasts or nobody says.
	First, Last, End time.Time
	Ended            string
	Count            int
	Source           string
}

// key is what makes two occurrences the same incident.
func (o Occurrence) key() string { return o.Node + "\x00" + o.Reason + "\x00" + o.Subject }

const (
	ourController = "ekslogs.io/node-agent"
	eksController = "eks-node-monitoring-agent"
	// codeLimit bounds a reason code in the text of an Event.
	codeLimit = 128
)

// FromEvent reads an Event about a Node. ok is false when it is none of an agent that
// watches nodes: the kubelet and the controllers write many more.
func FromEvent(e *corev1.Event, catalog *health.Catalog) (Occurrence, bool) {
	if e.InvolvedObject.Kind != "Node" {
		return Occurrence{}, false
	}
	o := Occurrence{
		Node: text(e.InvolvedObject.Name, maxValue), Reason: text(e.Reason, maxReason), Message: text(e.Message, maxMessage),
		Severity: string(health.Warning), Count: max(1, int(e.Count)), Source: SourceEvent,
		First: e.FirstTimestamp.Time, Last: e.LastTimestamp.Time,
	}
	if e.Type == corev1.EventTypeNormal {
		o.Severity = string(health.Info)
	}
	if !e.EventTime.IsZero() {
		o.First, o.Last = e.EventTime.Time, e.EventTime.Time
	}
	if e.Series != nil {
		o.Count = max(o.Count, int(e.Series.Count))
		o.Last = e.Series.LastObservedTime.Time
	}
	if o.First.IsZero() {
		o.First = e.CreationTimestamp.Time
	}
	if o.Last.Before(o.First) {
		o.Last = o.First
	}
	// The EKS agent's Events have the condition as reason, and the code in the text.
	if code, rest, ok := strings.Cut(o.Message, ":"); ok && columnOf(o.Reason) >= 0 && isCode(code) {
		o.Reason, o.Message = code, strings.TrimSpace(rest)
	}
	writer := e.ReportingController
	if writer == "" {
		writer = e.Source.Component
	}
	if writer == ourController || writer == eksController {
		return o, true
	}
	_, known := catalog.Lookup(o.Reason)
	return o, known
}

func isCode(s string) bool {
	return s != "" && len(s) <= codeLimit && !strings.ContainsAny(s, " \t/")
}

// Incidents are those that the annotation remembers, oldest first.
func (f *Facts) Incidents() []Occurrence {
	if f.Health == nil {
		return nil
	}
	out := make([]Occurrence, 0, len(f.Health.Incidents))
	for _, n := range f.Health.Incidents {
		o := Occurrence{
			Node: f.Name, Reason: n.Reason, Severity: n.Severity, Subject: n.Subject,
			First: n.From, Last: n.Last, Ended: n.Ended, Count: max(1, n.Count), Source: SourceAnnotation,
		}
		if n.To != nil {
			o.End = *n.To
		}
		out = append(out, o)
	}
	slices.Reverse(out)
	return out
}

// Timeline joins occurrences of the same incident, from whatever source, and sorts
// them by when they were last seen, newest last. An Event says nothing about its
// subject, so it joins the annotation's incident of the same node and reason whose time
// it falls into.
func Timeline(all []Occurrence) []Occurrence {
	byKey := map[string][]int{}
	var out []Occurrence
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Occurrence) int {
		if a.Source != b.Source {
			return strings.Compare(a.Source, b.Source)
		}
		return a.First.Compare(b.First)
	})
	for _, o := range sorted {
		joined := false
		for _, i := range byKey[o.Node+"\x00"+o.Reason] {
			if joins(&out[i], o) {
				merge(&out[i], o)
				joined = true
				break
			}
		}
		if !joined {
			k := o.Node + "\x00" + o.Reason
			byKey[k] = append(byKey[k], len(out))
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b Occurrence) int {
		if c := a.Last.Compare(b.Last); c != 0 {
			return c
		}
		return strings.Compare(a.key(), b.key())
	})
	return out
}

// slack is how far apart two accounts of one incident may be: clocks have seconds, and
// Events of a series are patched at most every five minutes.
const slack = 5 * time.Minute

func joins(into *Occurrence, o Occurrence) bool {
	if into.Source == o.Source && (into.Source == SourceAnnotation || into.Subject != o.Subject || into.Severity != o.Severity) {
		return false
	}
	if into.Source == SourceEvent && o.Source == SourceEvent {
		return true
	}
	return !o.First.After(into.Last.Add(slack)) && !into.First.After(o.Last.Add(slack))
}

func merge(into *Occurrence, o Occurrence) {
	if o.First.Before(into.First) {
		into.First = o.First
	}
	if o.Last.After(into.Last) {
		into.Last = o.Last
	}
	if into.Message == "" {
		into.Message = o.Message
	}
	if into.Source == o.Source {
		into.Count += o.Count
	} else {
		into.Count = max(into.Count, o.Count)
	}
}
