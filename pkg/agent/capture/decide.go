package capture

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// key identifies one request. An edit of the spec raises the generation; an object
// that was deleted and made anew has another UID.
type key struct {
	UID        types.UID
	Generation int64
}

func keyOf(nd *v1alpha1.NodeDiagnostic) key {
	return key{nd.UID, nd.Generation}
}

// memory is what this process knows beyond the object.
type memory struct {
	// running is the capture at work, nil when there is none.
	running *key
	// ended is how the last capture of this process ended, and stays true while the
	// API server has not heard of it yet.
	ended *outcome
}

// outcome is how a capture ended.
type outcome struct {
	key
	state v1alpha1.CaptureStateCompleted
}

// action is what is to be done next.
type action int

const (
	// actNothing: the object and the agent agree.
	actNothing action = iota
	// actStart: say Running, then capture.
	actStart
	// actCancel: end the capture at work; nobody asks for it any more.
	actCancel
	// actReport: write how the capture ended.
	actReport
	// actDisown: a process before this one has left a capture Running. It is
	// reported as failed and not run again: it may have been what ended us.
	actDisown
	// actDiscard: no object asks for a bundle. The one on disk, if any, goes.
	actDiscard
)

// decide compares what is asked for with what has been done. nd is nil when there
// is no object.
func decide(nd *v1alpha1.NodeDiagnostic, m memory) action {
	wanted := nd != nil && nd.DeletionTimestamp == nil && nd.Spec.LogCapture != nil
	if m.running != nil {
		if !wanted || *m.running != keyOf(nd) {
			return actCancel
		}
		return actNothing
	}
	if !wanted {
		return actDiscard
	}
	status := nd.Status.Capture(v1alpha1.CaptureTypeLog)
	if m.ended != nil && m.ended.key == keyOf(nd) {
		if status != nil && status.State.Completed != nil && status.State.Completed.CaptureID == m.ended.state.CaptureID {
			return actNothing
		}
		return actReport
	}
	switch {
	case status == nil:
		return actStart
	case status.State.Completed != nil:
		if observed(status.State.Completed) >= nd.Generation {
			return actNothing
		}
		return actStart
	case status.State.Running != nil && runningGeneration(nd) >= nd.Generation:
		return actDisown
	}
	return actStart
}

// observed is the generation that a completed capture was of. Agents that do not
// say it are taken to have served the object as it was created.
func observed(c *v1alpha1.CaptureStateCompleted) int64 {
	return max(c.ObservedGeneration, 1)
}

// runningGeneration is the generation that a Running status was written for: its
// condition says so. Without one it is taken for the object's own.
func runningGeneration(nd *v1alpha1.NodeDiagnostic) int64 {
	i := slices.IndexFunc(nd.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionLogCaptured && c.Reason == v1alpha1.ConditionReasonRunning
	})
	if i < 0 {
		return nd.Generation
	}
	return nd.Status.Conditions[i].ObservedGeneration
}

// packetDue reports whether nd asks for a packet capture that has had no answer.
func packetDue(nd *v1alpha1.NodeDiagnostic) bool {
	if nd == nil || nd.DeletionTimestamp != nil || nd.Spec.PacketCapture == nil {
		return false
	}
	s := nd.Status.Capture(v1alpha1.CaptureTypePacket)
	return s == nil || s.State.Completed == nil || observed(s.State.Completed) < nd.Generation
}
