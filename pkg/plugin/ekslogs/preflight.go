package ekslogs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/plugin/suggest"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

const (
	// staleHeartbeat is how old the last heartbeat of a living agent may be: agents
	// renew their conditions every five minutes.
	staleHeartbeat = 11 * time.Minute
	// agentPods selects the pods of this agent and of the EKS node monitoring agent.
	agentPods = "app.kubernetes.io/name in (ekslogs,node-agent,ekslogs-node-agent,eks-node-monitoring-agent)"
)

// agentConditions are those that an agent writes on its Node.
func agentConditions() []string {
	return []string{"KernelReady", "ContainerRuntimeReady", "NetworkingReady", "StorageReady", "AcceleratedHardwareReady"}
}

// unknownNodeError says that there is no such node.
type unknownNodeError struct {
	name string
	near []string
}

func (e *unknownNodeError) Error() string {
	return fmt.Sprintf("there is no node %q.%s", e.name, suggest.Sentence(e.near))
}

// findings of a preflight.
type readiness struct {
	// agentSeen is false if there is no sign of an agent on the node.
	agentSeen bool
	// version is the agent's, if it tells.
	version string
	// remarks are what the user should know although the work goes on.
	remarks []string
}

// preflight tells at once what would otherwise be learnt after minutes: that the
// node is not there, that its kubelet is silent, or that the user may not download.
// What it may not ask it goes on without, and says so.
func (r *runner) preflight(ctx context.Context, name string) (readiness, error) {
	var denied error
	var wg sync.WaitGroup
	wg.Go(func() {
		if ok, err := r.c.mayDownload(ctx, name); err == nil && !ok {
			denied = &deniedError{verb: "get", resource: "nodes/proxy"}
		}
	})
	got, err := r.inspect(ctx, name)
	wg.Wait()
	if err == nil {
		err = denied
	}
	return got, err
}

func (r *runner) inspect(ctx context.Context, name string) (readiness, error) {
	node, err := r.c.node(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return readiness{}, &unknownNodeError{name: name, near: suggest.Near(name, r.nodeNames(ctx), 3)}
	case apierrors.IsForbidden(err):
		// Nothing is known of the agent either: give it the benefit of the doubt.
		return readiness{agentSeen: true, remarks: []string{
			`you may not "get" nodes, so that nothing can be said of the node's state beforehand`}}, nil
	case err != nil:
		return readiness{}, err
	}
	var out readiness
	if ready := condition(node, string(corev1.NodeReady)); ready == nil || ready.Status != corev1.ConditionTrue {
		remark, err := notReady(ready)
		if err != nil {
			return readiness{}, err
		}
		out.remarks = append(out.remarks, remark)
	}
	if h, err := annotation.Decode(node.Annotations[annotation.Key]); err == nil {
		out.version = h.AgentVersion
	}
	beat := lastHeartbeat(node)
	if out.agentSeen = time.Since(beat) <= staleHeartbeat; out.agentSeen {
		return out, nil
	}
	pods, err := r.agentPodsOn(ctx, name)
	switch {
	case apierrors.IsForbidden(err):
		out.agentSeen = true
		out.remarks = append(out.remarks, `you may not "list" pods, so that nothing can be said of an agent on the node beforehand`)
	case err != nil:
		return readiness{}, err
	case len(pods) > 0:
		out.agentSeen = slices.ContainsFunc(pods, podRuns)
		if !out.agentSeen {
			out.remarks = append(out.remarks, fmt.Sprintf("the agent's pod %s/%s is %s", pods[0].Namespace, pods[0].Name, podState(&pods[0])))
		}
	case !beat.IsZero():
		out.remarks = append(out.remarks, fmt.Sprintf("the node's agent was last heard of %s ago, and has no pod here", duration.HumanDuration(time.Since(beat))))
	default:
		out.remarks = append(out.remarks, "there is no sign of an agent on the node: no heartbeat, no pod")
	}
	return out, nil
}

func condition(node *corev1.Node, kind string) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if string(node.Status.Conditions[i].Type) == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// notReady tells a node that is unwell from one whose kubelet, which would hand out
// the bundle, is gone.
func notReady(ready *corev1.NodeCondition) (remark string, err error) {
	if ready == nil {
		return "", errors.New("the node is NotReady: its kubelet has never reported, and it is the kubelet that hands out the bundle")
	}
	since := duration.HumanDuration(time.Since(ready.LastTransitionTime.Time))
	if ready.Status == corev1.ConditionUnknown {
		return "", fmt.Errorf("the node is NotReady: its kubelet has been silent for %s, and it is the kubelet that hands out the bundle. "+
			"Look at the instance's console, or reboot it and fetch the logs of the boot before", since)
	}
	return fmt.Sprintf("the node is NotReady since %s (%s); its kubelet still reports, so that the bundle may be had all the same",
		since, strings.TrimSpace(term.Clean(ready.Reason+": "+ready.Message))), nil
}

func lastHeartbeat(node *corev1.Node) time.Time {
	var last time.Time
	for _, kind := range agentConditions() {
		if c := condition(node, kind); c != nil && c.LastHeartbeatTime.After(last) {
			last = c.LastHeartbeatTime.Time
		}
	}
	return last
}

func (r *runner) agentPodsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := r.c.listJSON(ctx, "pods", &metav1.ListOptions{
		LabelSelector: agentPods,
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	}, "application/json", list)
	return list.Items, err
}

func podRuns(p corev1.Pod) bool {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Running != nil {
			return true
		}
	}
	return false
}

func podState(p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		if w := s.State.Waiting; w != nil && w.Reason != "" {
			return term.Clean(w.Reason)
		}
	}
	return strings.ToLower(string(p.Status.Phase))
}
