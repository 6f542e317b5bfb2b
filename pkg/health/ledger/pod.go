package ledger

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// Pod is a pod of this node that a fault hit or came from.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// String returns "namespace/name".
func (p Pod) String() string { return p.Namespace + "/" + p.Name }

// maxPods is how many pods one fault tells of, each once.
const maxPods = 16

// podPart is a name that the API server accepts in an object reference; names are read
// from the node's disk, where anybody with a hostPath can write.
var podPart = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// podOf is the pod that a finding names by its fields "pod" (namespace/name) and
// "pod_uid", nil for none. What user space wrote to the kernel's log names no pod: it
// could be anybody's.
func podOf(f health.Finding) *Pod {
	if f.Origin == health.OriginUserspace {
		return nil
	}
	name, _ := f.Fields["pod"].(string)
	uid, _ := f.Fields["pod_uid"].(string)
	p := Pod{UID: uid}
	var ok bool
	if p.Namespace, p.Name, ok = strings.Cut(name, "/"); !ok || !podPart.MatchString(p.Namespace) || !podPart.MatchString(p.Name) || !podPart.MatchString(uid) {
		return nil
	}
	return &p
}

// tellPod puts a notice for the pod of a finding into the outbox, once for each pod of
// an incident, beside that for the Node.
func (l *Ledger) tellPod(e *Entry, f health.Finding, now time.Time) {
	p := podOf(f)
	if p == nil || e.judgment.severity == health.Info || slices.Contains(e.Pods, p.UID) || len(e.Pods) >= maxPods {
		return
	}
	e.Pods = append(e.Pods, p.UID)
	kind := Detected
	if e.judgment.shadow {
		kind = WouldBe
	}
	l.put(Notice{
		Key: e.Key + "/pod/" + p.UID, Kind: kind, Condition: e.Condition, Reason: e.Reason, Subject: e.Subject,
		Severity: e.judgment.severity, Message: clean(f.Message, maxMessage), First: seconds(now), Last: seconds(now),
		Count: 1, Created: now, Pod: p, OnPod: true,
	})
}
