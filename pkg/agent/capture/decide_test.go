package capture

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// object makes a NodeDiagnostic that asks for a log bundle.
func object(uid string, generation int64, change ...func(*v1alpha1.NodeDiagnostic)) *v1alpha1.NodeDiagnostic {
	nd := &v1alpha1.NodeDiagnostic{}
	nd.Name, nd.UID, nd.Generation = "n", types.UID(uid), generation
	nd.Spec.LogCapture = &v1alpha1.LogCapture{Destination: v1alpha1.DestinationNode}
	for _, f := range change {
		f(nd)
	}
	return nd
}

func completed(id string, observed int64) func(*v1alpha1.NodeDiagnostic) {
	return func(nd *v1alpha1.NodeDiagnostic) {
		nd.Status.SetCapture(v1alpha1.CaptureTypeLog, v1alpha1.CaptureState{
			Completed: &v1alpha1.CaptureStateCompleted{Reason: v1alpha1.ReasonSuccess, CaptureID: id, ObservedGeneration: observed}})
	}
}

func running(nd *v1alpha1.NodeDiagnostic) {
	nd.Status.SetCapture(v1alpha1.CaptureTypeLog, v1alpha1.CaptureState{Running: &v1alpha1.CaptureStateRunning{CaptureID: "r"}})
}

func runningOf(generation int64) func(*v1alpha1.NodeDiagnostic) {
	return func(nd *v1alpha1.NodeDiagnostic) {
		running(nd)
		nd.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionLogCaptured, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ConditionReasonRunning, ObservedGeneration: generation}}
	}
}

func deleting(nd *v1alpha1.NodeDiagnostic)  { nd.DeletionTimestamp = &metav1.Time{} }
func noCapture(nd *v1alpha1.NodeDiagnostic) { nd.Spec.LogCapture = nil }
func at(nd *v1alpha1.NodeDiagnostic) *key   { k := keyOf(nd); return &k }
func endedAs(nd *v1alpha1.NodeDiagnostic, id string) *outcome {
	return &outcome{keyOf(nd), v1alpha1.CaptureStateCompleted{CaptureID: id}}
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		nd   *v1alpha1.NodeDiagnostic
		m    memory
		want action
	}{
		"no object":                                    {nil, memory{}, actDiscard},
		"an object that is being deleted":              {object("a", 1, deleting), memory{}, actDiscard},
		"an object that asks for packets only":         {object("a", 1, noCapture), memory{}, actDiscard},
		"a new object":                                 {object("a", 1), memory{}, actStart},
		"a capture at work":                            {object("a", 1, running), memory{running: at(object("a", 1))}, actNothing},
		"a capture at work whose status is not seen":   {object("a", 1), memory{running: at(object("a", 1))}, actNothing},
		"the object of the capture at work is deleted": {nil, memory{running: at(object("a", 1))}, actCancel},
		"it is being deleted":                          {object("a", 1, running, deleting), memory{running: at(object("a", 1))}, actCancel},
		"it is edited":                                 {object("a", 2, running), memory{running: at(object("a", 1))}, actCancel},
		"it is edited to ask for packets only":         {object("a", 2, running, noCapture), memory{running: at(object("a", 1))}, actCancel},
		"it is recreated":                              {object("b", 1), memory{running: at(object("a", 1))}, actCancel},

		"completed before a restart":                   {object("a", 3, completed("x", 3)), memory{}, actNothing},
		"completed for an older spec":                  {object("a", 3, completed("x", 2)), memory{}, actStart},
		"completed by an agent without generations":    {object("a", 1, completed("x", 0)), memory{}, actNothing},
		"the same, edited since":                       {object("a", 2, completed("x", 0)), memory{}, actStart},
		"left running before a restart":                {object("a", 1, running), memory{}, actDisown},
		"left running, same generation in condition":   {object("a", 2, runningOf(2)), memory{}, actDisown},
		"left running, edited since":                   {object("a", 2, runningOf(1)), memory{}, actStart},
		"left running by a process, memory of another": {object("b", 1, running), memory{ended: endedAs(object("a", 1), "x")}, actDisown},

		"ended, not reported":                   {object("a", 1, running), memory{ended: endedAs(object("a", 1), "x")}, actReport},
		"ended, no status at all":               {object("a", 1), memory{ended: endedAs(object("a", 1), "x")}, actReport},
		"ended and reported":                    {object("a", 1, completed("x", 1)), memory{ended: endedAs(object("a", 1), "x")}, actNothing},
		"ended, an older result is still there": {object("a", 2, completed("w", 1)), memory{ended: endedAs(object("a", 2), "x")}, actReport},
		"ended and reported, edited since":      {object("a", 2, completed("x", 1)), memory{ended: endedAs(object("a", 1), "x")}, actStart},
		"ended and reported, recreated since":   {object("b", 1), memory{ended: endedAs(object("a", 1), "x")}, actStart},
		"ended and reported, deleted since":     {nil, memory{ended: endedAs(object("a", 1), "x")}, actDiscard},
		"a state that is neither, as no agent writes": {object("a", 1, func(nd *v1alpha1.NodeDiagnostic) {
			nd.Status.SetCapture(v1alpha1.CaptureTypeLog, v1alpha1.CaptureState{})
		}), memory{}, actStart},
	} {
		if got := decide(tc.nd, tc.m); got != tc.want {
			t.Errorf("%s: action %d, want %d", name, got, tc.want)
		}
	}
}

func TestPacketCapturesAreAnsweredOncePerGeneration(t *testing.T) {
	packets := func(nd *v1alpha1.NodeDiagnostic) { nd.Spec.PacketCapture = &v1alpha1.PacketCapture{} }
	answered := func(nd *v1alpha1.NodeDiagnostic) {
		nd.Status.SetCapture(v1alpha1.CaptureTypePacket, v1alpha1.CaptureState{Completed: &v1alpha1.CaptureStateCompleted{ObservedGeneration: 1}})
	}
	for name, tc := range map[string]struct {
		nd   *v1alpha1.NodeDiagnostic
		want bool
	}{
		"no object":       {nil, false},
		"logs only":       {object("a", 1), false},
		"not answered":    {object("a", 1, packets), true},
		"answered":        {object("a", 1, packets, answered), false},
		"edited since":    {object("a", 2, packets, answered), true},
		"being deleted":   {object("a", 1, packets, deleting), false},
		"packets, no log": {object("a", 1, packets, noCapture), true},
	} {
		if got := packetDue(tc.nd); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
