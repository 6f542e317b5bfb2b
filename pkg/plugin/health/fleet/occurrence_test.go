package fleet

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/pkg/health"
)

func event(reason, message, writer string) *corev1.Event {
	return &corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "a"}, Type: "Warning",
		Reason: reason, Message: message, ReportingController: writer,
		FirstTimestamp: ago(time.Hour), LastTimestamp: ago(time.Minute), Count: 4,
	}
}

func TestFromEvent(t *testing.T) {
	catalog := health.NewCatalog()
	series := event("AppCrash", "x", ourController)
	series.FirstTimestamp, series.LastTimestamp, series.Count = metav1.Time{}, metav1.Time{}, 0
	series.EventTime = metav1.NewMicroTime(now().Add(-time.Hour))
	series.Series = &corev1.EventSeries{Count: 100, LastObservedTime: metav1.NewMicroTime(now())}
	old := event("AppCrash", "x", "")
	old.Source.Component = eksController
	pod := event("AppCrash", "x", ourController)
	pod.InvolvedObject.Kind = "Pod"
	for name, tc := range map[string]struct {
		event           *corev1.Event
		ok              bool
		reason, message string
		count           int
		age             time.Duration
	}{
		"ours, a series":             {series, true, "AppCrash", "x", 100, 0},
		"ours, once":                 {event("AppCrash", "x", ourController), true, "AppCrash", "x", 4, time.Minute},
		"the EKS agent's":            {event("KernelReady", "AppCrash: python died", eksController), true, "AppCrash", "python died", 4, time.Minute},
		"the EKS agent's, old style": {old, true, "AppCrash", "x", 4, time.Minute},
		"npd's":                      {event("KernelOops", "x", "kernel-monitor"), true, "KernelOops", "x", 4, time.Minute},
		"the kubelet's":              {event("InvalidDiskCapacity", "x", "kubelet"), false, "", "", 0, 0},
		"about a pod":                {pod, false, "", "", 0, 0},
	} {
		o, ok := FromEvent(tc.event, catalog)
		if ok != tc.ok {
			t.Errorf("%s: taken: %v", name, ok)
			continue
		}
		if ok && (o.Reason != tc.reason || o.Message != tc.message || o.Count != tc.count || now().Sub(o.Last) != tc.age) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestTimelineTellsAnIncidentOnce(t *testing.T) {
	minutes := func(n int) time.Time { return now().Add(time.Duration(n) * time.Minute) }
	all := []Occurrence{
		{Node: "a", Reason: "X", Severity: "Warning", First: minutes(-60), Last: minutes(-10), Count: 50, Source: SourceEvent, Message: "words"},
		{Node: "a", Reason: "X", Severity: "Warning", Subject: "sda", First: minutes(-60), Last: minutes(-9), Count: 60, Source: SourceAnnotation},
		{Node: "a", Reason: "X", Severity: "Warning", Subject: "sda", First: minutes(-500), Last: minutes(-400), Count: 1, Source: SourceAnnotation},
		{Node: "b", Reason: "X", Severity: "Warning", First: minutes(-60), Last: minutes(-30), Count: 1, Source: SourceEvent},
		{Node: "b", Reason: "X", Severity: "Warning", First: minutes(-20), Last: minutes(-1), Count: 2, Source: SourceEvent},
	}
	got := Timeline(all)
	if len(got) != 3 {
		t.Fatalf("%d incidents: %+v", len(got), got)
	}
	if o := got[0]; o.Last != minutes(-400) {
		t.Errorf("the oldest comes first: %+v", o)
	}
	if o := got[1]; o.Node != "a" || o.Count != 60 || o.Message != "words" || o.Subject != "sda" || o.Last != minutes(-9) {
		t.Errorf("Event and annotation are one incident: %+v", o)
	}
	if o := got[2]; o.Node != "b" || o.Count != 3 || o.First != minutes(-60) {
		t.Errorf("Events of one reason are one line: %+v", o)
	}
}
