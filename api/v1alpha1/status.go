package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeDiagnosticStatus is the state of the captures, one entry a type.
type NodeDiagnosticStatus struct {
	// CaptureStatuses holds at most one entry of each type.
	// +optional
	CaptureStatuses []CaptureStatus `json:"captureStatuses,omitempty"`
	// Conditions say the same in the form that "kubectl wait --for=condition" reads.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionLogCaptured is True, with reason Completed, once the log capture of the
// current generation has ended, and False, with reason Running, while it runs.
const ConditionLogCaptured = "LogCaptured"

// The reasons of ConditionLogCaptured.
const (
	ConditionReasonRunning   = "Running"
	ConditionReasonCompleted = "Completed"
)

// CaptureType names a kind of capture.
type CaptureType string

// The kinds of capture.
const (
	CaptureTypeLog    CaptureType = "Log"
	CaptureTypePacket CaptureType = "Packet"
)

// CaptureStatus is the state of one capture.
type CaptureStatus struct {
	// Type is Log or Packet.
	Type CaptureType `json:"type"`
	// State is either running or completed.
	State CaptureState `json:"state"`
}

// CaptureState holds exactly one of its members.
type CaptureState struct {
	// Running is set while the capture runs.
	// +optional
	Running *CaptureStateRunning `json:"running,omitempty"`
	// Completed is set once the capture has ended, well or badly.
	// +optional
	Completed *CaptureStateCompleted `json:"completed,omitempty"`
}

// CaptureStateRunning is a capture at work.
type CaptureStateRunning struct {
	// StartedAt is when the capture began.
	StartedAt metav1.Time `json:"startedAt"`
	// CaptureID identifies this capture in the agent's log.
	// +optional
	CaptureID string `json:"captureID,omitempty"`
}

// CaptureStateCompleted is a capture that has ended.
type CaptureStateCompleted struct {
	// Reason is Success, SuccessWithErrors or Failure.
	Reason string `json:"reason"`
	// Message tells a person what happened.
	Message string `json:"message"`
	// StartedAt is when the capture began.
	StartedAt metav1.Time `json:"startedAt"`
	// FinishedAt is when it ended.
	FinishedAt metav1.Time `json:"finishedAt"`
	// CaptureID identifies this capture in the agent's log.
	// +optional
	CaptureID string `json:"captureID,omitempty"`
	// ObservedGeneration is the metadata.generation of the spec that was captured.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// The reasons of a completed capture.
const (
	ReasonSuccess           = "Success"
	ReasonSuccessWithErrors = "SuccessWithErrors"
	ReasonFailure           = "Failure"
)

// Capture returns the status of the capture of type t, or nil. The pointer is
// into s.
func (s *NodeDiagnosticStatus) Capture(t CaptureType) *CaptureStatus {
	for i := range s.CaptureStatuses {
		if s.CaptureStatuses[i].Type == t {
			return &s.CaptureStatuses[i]
		}
	}
	return nil
}

// SetCapture replaces the state of the capture of type t, or adds it.
func (s *NodeDiagnosticStatus) SetCapture(t CaptureType, state CaptureState) {
	if c := s.Capture(t); c != nil {
		c.State = state
		return
	}
	s.CaptureStatuses = append(s.CaptureStatuses, CaptureStatus{Type: t, State: state})
}
