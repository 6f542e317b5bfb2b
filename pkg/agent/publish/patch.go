package publish

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
)

// Desired is what the Node shall show.
type Desired struct {
	// Conditions are those to be written.
	Conditions []ledger.Condition
	// On are the types whose monitors are on, whether or not they are in Conditions
	// yet.
	On []health.ConditionType
	// Off are the types whose monitors are off: if we wrote them, they are removed.
	Off []health.ConditionType
	// Health is the annotation; its Instance and Standby are filled in here.
	Health annotation.Health
}

// nodeCondition is c as the API has it, with the given heartbeat.
func nodeCondition(c ledger.Condition, heartbeat time.Time) corev1.NodeCondition {
	status := corev1.ConditionFalse
	if c.Healthy {
		status = corev1.ConditionTrue
	}
	return corev1.NodeCondition{
		Type: corev1.NodeConditionType(c.Type), Status: status, Reason: c.Reason, Message: c.Message,
		LastTransitionTime: metav1.NewTime(c.Since), LastHeartbeatTime: metav1.NewTime(heartbeat),
	}
}

// sameWords reports whether two conditions differ in their heartbeat at most.
func sameWords(a, b corev1.NodeCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.LastTransitionTime.Time.Equal(b.LastTransitionTime.Time)
}

// patch is a strategic merge patch of a Node's status. Conditions are merged by
// type, so that those of others stay as they are whatever happens meanwhile, and no
// read is needed before. Changes of annotations are accepted in the same request.
type patch struct {
	Metadata struct {
		Annotations map[string]*string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Status *patchStatus `json:"status,omitempty"`
}

type patchStatus struct {
	Conditions []any `json:"conditions"`
}

type patchDelete struct {
	Patch string               `json:"$patch"`
	Type  health.ConditionType `json:"type"`
}

// write is a patch and what it says.
type write struct {
	conditions []corev1.NodeCondition
	// beating are those of conditions that were evaluated now.
	beating    []health.ConditionType
	remove     []health.ConditionType
	annotation string
	findings   string
	// obeyed is set when the all-clear annotation has been obeyed and can go.
	obeyed bool
}

func (w write) body() ([]byte, error) {
	var p patch
	p.Metadata.Annotations = map[string]*string{annotation.Key: &w.annotation}
	if w.obeyed {
		p.Metadata.Annotations[annotation.AllClearKey] = nil
	}
	if len(w.conditions)+len(w.remove) > 0 {
		p.Status = &patchStatus{}
		for _, c := range w.conditions {
			p.Status.Conditions = append(p.Status.Conditions, c)
		}
		for _, t := range w.remove {
			p.Status.Conditions = append(p.Status.Conditions, patchDelete{"delete", t})
		}
	}
	return json.Marshal(p)
}

// removable are the types of monitors that are off and that we wrote, as far as the
// Node tells: a condition of somebody else is not ours to remove.
func removable(s *snapshot, off []health.ConditionType) []health.ConditionType {
	var out []health.ConditionType
	for _, t := range off {
		if _, ok := s.conditions[t]; !ok {
			continue
		}
		w, known := s.writers[t]
		if w.manager == Manager || (!known && s.watched[t] && !s.standby) {
			out = append(out, t)
		}
	}
	return out
}
