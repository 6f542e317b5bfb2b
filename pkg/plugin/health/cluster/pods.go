package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// Pod is a pod that a node's replacement would move or end.
type Pod struct {
	Namespace, Name string
	// Owner is its controller ("ReplicaSet/x"), empty for a pod that nothing makes anew.
	Owner string
	// Phase is Pending, Running, …
	Phase string
	// GPUs are those that it asked for.
	GPUs int64
	// Daemon says that it belongs to the node: a DaemonSet's, or a static one.
	Daemon bool
}

// maxPods bounds how many pods of one node are read. A kubelet runs 110 by default, and
// 737 at most on EKS.
const maxPods = 2000

// Pods returns the pods on the node that have not ended.
func (c *Cluster) Pods(ctx context.Context, node string) ([]Pod, error) {
	bounded, heard, end := c.bound(ctx)
	defer end()
	p := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		list := &corev1.PodList{}
		err := c.core.Get().Resource("pods").VersionedParams(&opts, metav1.ParameterCodec).Do(ctx).Into(list)
		heard()
		return list, err
	})
	p.PageBufferSize = 1
	var out []Pod
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
	err := p.EachListItem(bounded, opts, func(obj runtime.Object) error {
		pod, ok := obj.(*corev1.Pod)
		if !ok || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || len(out) >= maxPods {
			return nil
		}
		out = append(out, onePod(pod))
		return nil
	})
	return out, c.explain(bounded, err, "list", "pods")
}

func onePod(pod *corev1.Pod) Pod {
	out := Pod{Namespace: term.Clean(pod.Namespace), Name: term.Clean(pod.Name), Phase: term.Clean(string(pod.Status.Phase))}
	if o := metav1.GetControllerOf(pod); o != nil {
		out.Owner = term.Clean(o.Kind + "/" + o.Name)
		out.Daemon = o.Kind == "DaemonSet" || o.Kind == "Node"
	}
	for i := range pod.Spec.Containers {
		if q, ok := pod.Spec.Containers[i].Resources.Requests["nvidia.com/gpu"]; ok {
			out.GPUs += q.Value()
		}
	}
	return out
}

// Diagnostic reports whether a NodeDiagnostic of the node exists. Without the right to
// ask, or without the API, err says so.
func (c *Cluster) Diagnostic(ctx context.Context, node string) (bool, error) {
	ctx, _, end := c.bound(ctx)
	defer end()
	_, err := c.diagnostics.Get().Resource(v1alpha1.Resource).Name(node).Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return false, fmt.Errorf("you may not get %s", v1alpha1.Resource)
	}
	return err == nil, c.explain(ctx, err, "get", v1alpha1.Resource)
}
