package publish

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
)

// snapshot is the little of a Node that matters here, so that the rest (images,
// volumes) is not kept.
type snapshot struct {
	uid        string
	version    uint64
	conditions map[health.ConditionType]corev1.NodeCondition
	// writers say who wrote each of our conditions last.
	writers  map[health.ConditionType]writer
	health   string
	instance string
	// standby says that the annotation was written by an agent that stands by, and
	// watched names the conditions that it says are watched.
	standby  bool
	watched  map[health.ConditionType]bool
	allClear string
	// allClearBy is who wrote the all-clear, as far as the API server tells.
	allClearBy string
}

// writer is a field manager and when it last wrote.
type writer struct {
	manager string
	at      time.Time
}

// ourTypes are the condition types that an agent of this kind may write.
func ourTypes() []health.ConditionType {
	return []health.ConditionType{
		health.KernelReady, health.ContainerRuntimeReady, health.NetworkingReady, health.StorageReady, health.AcceleratedHardwareReady,
	}
}

func takeSnapshot(n *corev1.Node) *snapshot {
	s := &snapshot{
		uid:        string(n.UID),
		conditions: map[health.ConditionType]corev1.NodeCondition{},
		writers:    map[health.ConditionType]writer{},
		watched:    map[health.ConditionType]bool{},
		health:     n.Annotations[annotation.Key],
		allClear:   n.Annotations[annotation.AllClearKey],
	}
	// Resource versions are ordered numbers in practice; one that is not counts as new.
	s.version, _ = strconv.ParseUint(n.ResourceVersion, 10, 64)
	if h, err := annotation.Decode(s.health); err == nil {
		s.instance, s.standby = h.Instance, h.Standby != ""
		for _, m := range h.Monitors {
			if m.State != annotation.MonitorOff {
				s.watched[health.ConditionType(m.Condition)] = true
			}
		}
	}
	for _, t := range ourTypes() {
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeConditionType(t) {
				s.conditions[t] = c
			}
		}
	}
	for _, m := range n.ManagedFields {
		s.addWriter(m)
	}
	return s
}

// addWriter reads who wrote what from an entry of managedFields. Who last changed a
// condition's heartbeat wrote it last; the other fields stay with whoever gave them
// the value that they still have.
func (s *snapshot) addWriter(m metav1.ManagedFieldsEntry) {
	if m.FieldsV1 == nil || m.Time == nil {
		return
	}
	var fields struct {
		Metadata struct {
			Annotations map[string]json.RawMessage `json:"f:annotations"`
		} `json:"f:metadata"`
		Status struct {
			Conditions map[string]map[string]json.RawMessage `json:"f:conditions"`
		} `json:"f:status"`
	}
	if json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
		return
	}
	if _, ok := fields.Metadata.Annotations["f:"+annotation.AllClearKey]; ok {
		s.allClearBy = m.Manager + " at " + m.Time.UTC().Format(time.RFC3339)
	}
	for _, t := range ourTypes() {
		owned, ok := fields.Status.Conditions[`k:{"type":"`+string(t)+`"}`]
		if !ok {
			continue
		}
		if _, ok := owned["f:lastHeartbeatTime"]; ok {
			s.writers[t] = writer{m.Manager, m.Time.Time}
		}
	}
}

// adoptable returns our conditions as the ledger takes them over.
func (s *snapshot) adoptable() []ledger.NodeCondition {
	var out []ledger.NodeCondition
	for _, t := range ourTypes() {
		c, ok := s.conditions[t]
		if !ok || (c.Status != corev1.ConditionTrue && c.Status != corev1.ConditionFalse) {
			continue
		}
		message, _, _ := strings.Cut(c.Message, " [MonitorBlind:")
		out = append(out, ledger.NodeCondition{
			Type: t, Healthy: c.Status == corev1.ConditionTrue, Reason: c.Reason, Message: message, Since: c.LastTransitionTime.Time,
		})
	}
	return out
}
