package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ekslogs/ekslogs/pkg/health/ledger"
)

// Style is the shape of Events.
type Style string

// Styles of Events.
const (
	// StyleOurs is events.k8s.io/v1 with the reason code as reason.
	StyleOurs Style = "events"
	// StyleEKS is the EKS node monitoring agent's: core/v1, the condition type as
	// reason, and a message that begins with the reason code.
	StyleEKS Style = "eks"
)

const (
	// Events about cluster-scoped objects live here.
	eventNamespace = "default"
	// maxNote is the limit of the API for the note of an event.
	maxNote    = 1 << 10
	controller = "ekslogs.io/node-agent"
	// eksController is the component whose Events people select with the EKS agent.
	eksController = "eks-node-monitoring-agent"
)

// ParseStyle reads the value of --event-style.
func ParseStyle(s string) (Style, error) {
	switch Style(s) {
	case "", StyleOurs:
		return StyleOurs, nil
	case StyleEKS:
		return StyleEKS, nil
	}
	return "", fmt.Errorf("unknown event style %q: say events or eks", s)
}

// GroupVersion is the API that the style is written to.
func (s Style) GroupVersion() schema.GroupVersion {
	if s == StyleEKS {
		return corev1.SchemeGroupVersion
	}
	return eventsv1.SchemeGroupVersion
}

// EventName is the name of a notice's Event, the same after a crash as before it.
func EventName(node, boot string, n ledger.Notice) string {
	h := sha256.Sum256([]byte(strings.Join([]string{node, boot, n.Key, string(n.Kind), n.Reason}, "\x00")))
	const maxNode = 253 - 1 - 20
	if len(node) > maxNode {
		node = strings.TrimRight(node[:maxNode], ".-")
	}
	return node + "." + hex.EncodeToString(h[:10])
}

// namespaceOf is the namespace of a notice's Event: that of the object it is about.
func namespaceOf(n ledger.Notice) string {
	if n.OnPod && n.Pod != nil {
		return n.Pod.Namespace
	}
	return eventNamespace
}

// regarding is the object that a notice's Event is about.
func regarding(n ledger.Notice, o EventOptions) corev1.ObjectReference {
	if n.OnPod && n.Pod != nil {
		return corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: n.Pod.Namespace, Name: n.Pod.Name, UID: types.UID(n.Pod.UID),
		}
	}
	uid := o.UID()
	if uid == "" {
		uid = o.Node
	}
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: o.Node, UID: types.UID(uid)}
}

// text is the sentence of a notice's Event. Who looks at a pod wants to know the node.
func text(n ledger.Notice, o EventOptions) string {
	if n.OnPod {
		return n.Text() + " (node " + o.Node + ")"
	}
	return n.Text()
}

func (s Style) create(name string, n ledger.Notice, o EventOptions) ([]byte, error) {
	object := regarding(n, o)
	meta := metav1.ObjectMeta{Name: name, Namespace: namespaceOf(n)}
	if s == StyleEKS {
		return json.Marshal(&corev1.Event{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: meta,
			InvolvedObject: object, Type: eventType(n), Reason: conditionOr(n), Message: limit(eventReason(n)+": "+text(n, o), maxNote),
			FirstTimestamp: metav1.NewTime(n.First), LastTimestamp: metav1.NewTime(n.Last), Count: int32(min(n.Count, 1<<30)),
			Source: corev1.EventSource{Component: eksController, Host: o.Node}, ReportingController: eksController,
			ReportingInstance: limit(o.Instance, 128),
		})
	}
	return json.Marshal(&eventsv1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "events.k8s.io/v1", Kind: "Event"}, ObjectMeta: meta,
		EventTime: metav1.NewMicroTime(n.First), Series: series(n), Regarding: object, Type: eventType(n),
		Reason: eventReason(n), Action: string(n.Kind), Note: limit(text(n, o), maxNote),
		ReportingController: controller, ReportingInstance: limit(o.Instance, 128),
	})
}

func (s Style) update(n ledger.Notice) ([]byte, error) {
	if s == StyleEKS {
		return json.Marshal(map[string]any{"count": min(n.Count, 1<<30), "lastTimestamp": metav1.NewTime(n.Last)})
	}
	return json.Marshal(map[string]any{"series": series(n)})
}

// series is nil for what happened once: the API wants at least two for a series.
func series(n ledger.Notice) *eventsv1.EventSeries {
	if n.Count < 2 {
		return nil
	}
	return &eventsv1.EventSeries{Count: int32(min(n.Count, 1<<30)), LastObservedTime: metav1.NewMicroTime(n.Last)}
}

func eventType(n ledger.Notice) string {
	if n.Kind == ledger.Recovered {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

func eventReason(n ledger.Notice) string {
	if n.Kind == ledger.WouldBe {
		return limit("WouldBe"+n.Reason, 128)
	}
	return limit(n.Reason, 128)
}

func conditionOr(n ledger.Notice) string {
	if n.Condition == "" {
		return eventReason(n)
	}
	return string(n.Condition)
}

func limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
