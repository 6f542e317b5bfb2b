// Package fleet makes Nodes and Events as a cluster under observation has them, for the
// tests and benchmarks of "kubectl health". All ages are far from where their words
// change, so that screens of them are the same for hours.
package fleet

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

// Label is on every Node that this package makes; its value names the set.
const Label = "ekslogs.io/test-fleet"

// ageOld is when old things began: "10d" for most of a day.
const ageOld = 10*24*time.Hour + time.Hour

type maker struct{ now time.Time }

func (m maker) ago(d time.Duration) metav1.Time {
	return metav1.NewTime(m.now.Add(-d).Truncate(time.Second))
}

func (m maker) condition(kind, status, reason, message string) corev1.NodeCondition {
	return corev1.NodeCondition{
		Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status), Reason: reason, Message: message,
		LastTransitionTime: m.ago(ageOld), LastHeartbeatTime: m.ago(0),
	}
}

func (m maker) node(set, name string, labels map[string]string, conditions ...corev1.NodeCondition) *corev1.Node {
	n := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{Label: set}},
		// Nothing may be scheduled to it: it has no kubelet.
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: Label, Effect: corev1.TaintEffectNoSchedule}}},
	}
	for k, v := range labels {
		n.Labels[k] = v
	}
	n.Status.NodeInfo = corev1.NodeSystemInfo{KernelVersion: "6.12.40-63.114.amzn2023.x86_64", OSImage: "Amazon Linux 2023"}
	n.Status.Conditions = append([]corev1.NodeCondition{
		m.condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
		m.condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		m.condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		m.condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
	}, conditions...)
	return n
}

func (m maker) well(kinds ...string) []corev1.NodeCondition {
	var out []corev1.NodeCondition
	for _, k := range kinds {
		out = append(out, m.condition(k, "True", strings.TrimSuffix(k, "Ready")+"IsReady", "no fault is known"))
	}
	return out
}

func gpus(n *corev1.Node, count string) *corev1.Node {
	list := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(count)}
	n.Status.Capacity, n.Status.Allocatable = list, list
	return n
}

func health(n *corev1.Node, h annotation.Health) *corev1.Node {
	h.AgentVersion = "v1.2.3"
	value, err := annotation.Encode(h)
	if err != nil {
		panic(err) // what this package makes is small
	}
	n.Annotations = map[string]string{annotation.Key: value}
	return n
}

// Light is a small cluster on a common day: of each verdict one node.
func Light(now time.Time) []*corev1.Node {
	m := maker{now}
	gpu := map[string]string{
		"karpenter.sh/nodepool": "gpu", "node.kubernetes.io/instance-type": "p5.48xlarge", "topology.kubernetes.io/zone": "us-east-1a",
		"karpenter.k8s.aws/instance-ami-id": "ami-0123456789abcdef0",
	}
	cpu := map[string]string{"node.kubernetes.io/instance-type": "m7i.4xlarge", "topology.kubernetes.io/zone": "us-east-1b"}
	all := []string{"KernelReady", "ContainerRuntimeReady", "NetworkingReady", "StorageReady"}
	since := now.Add(-ageOld)
	xid := "NVRM: Xid (PCI:0000:53:00): 79, GPU has fallen off the bus."
	sick := gpus(health(m.node("light", "gpu-1.test", gpu, append(m.well(all...),
		m.condition("AcceleratedHardwareReady", "False", "NvidiaXID79Error", "GPU 0000:53:00: Xid 79, GPU has fallen off the bus"))...),
		annotation.Health{
			Findings: []annotation.Finding{{Condition: "AcceleratedHardwareReady", Reason: "NvidiaXID79Error", Severity: "Fatal", Subject: "0000:53:00", Since: since, Evidence: xid, Clears: "reboot"}},
			GPUs: []annotation.GPU{
				{PCI: "0000:53:00", UUID: "GPU-0", Verdict: annotation.VerdictReboot, Reason: "NvidiaXID79Error", Since: since},
				{PCI: "0000:64:00", UUID: "GPU-1", Verdict: annotation.VerdictOK, Since: since},
			},
			Incidents: []annotation.Incident{{Reason: "NvidiaXID79Error", Severity: "Fatal", Condition: "AcceleratedHardwareReady", Subject: "0000:53:00", From: since, Last: since, Count: 3}},
		}), "2")
	well := gpus(health(m.node("light", "gpu-2.test", gpu, m.well(append(all, "AcceleratedHardwareReady")...)...), annotation.Health{}), "2")
	warned := health(m.node("light", "cpu-1.test", cpu, m.well(all...)...), annotation.Health{
		Findings: []annotation.Finding{{Condition: "KernelReady", Reason: "ApproachingMaxOpenFiles", Severity: "Warning", Since: since, Evidence: "71 % of fs.file-max"}},
	})
	silent := m.node("light", "cpu-2.test", cpu, m.well(all...)...)
	for i := range silent.Status.Conditions {
		if c := &silent.Status.Conditions[i]; c.Type == "KernelReady" {
			c.LastHeartbeatTime = m.ago(ageOld)
		}
	}
	return []*corev1.Node{sick, well, warned, silent, m.node("light", "cpu-3.test", cpu)}
}

// Hostile are Nodes whose writers mean harm, or have lost their senses.
func Hostile(now time.Time) []*corev1.Node {
	m := maker{now}
	escapes := m.node("hostile", "escapes.test", nil,
		m.condition("KernelReady", "False", "Evil\x1b[2J\x1b[31mRed\u202e", strings.Repeat("\x1b]0;owned\x07boo \n", 1<<16)))
	wide := m.node("hostile", "wide.test", nil, m.condition("StorageReady", "False", "ディスク故障", "磁盘坏了"))
	many := m.node("hostile", "many.test", nil)
	for i := range 200 {
		many.Status.Conditions = append(many.Status.Conditions, m.condition(fmt.Sprintf("Noise%03d", i), "True", "Noise", "noise"))
	}
	many.Status.Conditions = append(many.Status.Conditions, m.condition("NetworkingReady", "False", "InterfaceNotUp", "eth0 is down"))
	broken := m.node("hostile", "broken.test", nil, m.well("KernelReady")...)
	broken.Annotations = map[string]string{annotation.Key: `{"version":"v9"}`}
	future := m.node("hostile", "future.test", nil, m.condition("KernelReady", "False", "FromTheFuture", ""))
	future.Status.Conditions[4].LastTransitionTime = metav1.NewTime(now.Add(ageOld))
	return []*corev1.Node{escapes, wide, many, broken, future}
}

// Event is a Warning Event about a node as our agent writes it, seen just now and for
// the first time long ago.
func Event(now time.Time, node, reason, message string) *corev1.Event {
	m := maker{now}
	return &corev1.Event{
		TypeMeta:       metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta:     metav1.ObjectMeta{Name: node + "." + strings.ToLower(reason), Namespace: "default", Labels: map[string]string{Label: "event"}, CreationTimestamp: m.ago(ageOld)},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node, UID: "x"},
		Type:           corev1.EventTypeWarning, Reason: reason, Message: message, Action: "Raised",
		FirstTimestamp: m.ago(ageOld), LastTimestamp: m.ago(0), Count: 7,
		ReportingController: "ekslogs.io/node-agent", ReportingInstance: node,
		Source: corev1.EventSource{Component: "ekslogs.io/node-agent", Host: node},
	}
}
