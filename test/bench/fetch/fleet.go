package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// fleet is a number of Node objects that point at one kubelet.
type fleet struct {
	client kubernetes.Interface
	names  []string
	cancel context.CancelFunc
}

// newFleet makes n nodes like the one named model, and keeps their leases fresh.
func newFleet(ctx context.Context, cfg *rest.Config, model string, n int) (*fleet, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	like, err := client.CoreV1().Nodes().Get(ctx, model, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &fleet{client: client, cancel: cancel}
	for i := range n {
		name := fmt.Sprintf("bench-%s-%02d", like.Name, i)
		if err := f.add(ctx, name, like); err != nil {
			f.remove()
			return nil, err
		}
	}
	go f.renew(ctx)
	return f, nil
}

func (f *fleet) add(ctx context.Context, name string, like *corev1.Node) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"ekslogs.io/bench": "true"}}}
	// Nothing may be scheduled to it: its kubelet knows nothing of it.
	node.Spec.Taints = []corev1.Taint{{Key: "ekslogs.io/bench", Effect: corev1.TaintEffectNoSchedule}}
	if _, err := f.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return err
	}
	f.names = append(f.names, name)
	now := metav1.Now()
	node.Status = corev1.NodeStatus{
		Addresses:       like.Status.Addresses,
		DaemonEndpoints: like.Status.DaemonEndpoints,
		Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Bench", LastHeartbeatTime: now, LastTransitionTime: now},
			// The sign of life that agents give.
			{Type: "KernelReady", Status: corev1.ConditionTrue, Reason: "Bench", LastHeartbeatTime: now, LastTransitionTime: now},
		},
	}
	// A patch, which the node controller's own writes do not get in the way of.
	patch, err := json.Marshal(map[string]any{"status": node.Status})
	if err != nil {
		return err
	}
	if _, err := f.client.CoreV1().Nodes().PatchStatus(ctx, name, patch); err != nil {
		return err
	}
	return f.lease(ctx, name)
}

// lease says that the node is alive, as its kubelet would.
func (f *fleet) lease(ctx context.Context, name string) error {
	now, seconds := metav1.NowMicro(), int32(40)
	leases := f.client.CoordinationV1().Leases("kube-node-lease")
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func (f *fleet) renew(ctx context.Context) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, name := range f.names {
				if err := f.lease(ctx, name); err != nil && ctx.Err() == nil {
					fmt.Fprintln(os.Stderr, "lease of", name+":", err)
				}
			}
		}
	}
}

// remove deletes what newFleet made.
func (f *fleet) remove() {
	f.cancel()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, name := range f.names {
		nodeErr := f.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
		leaseErr := f.client.CoordinationV1().Leases("kube-node-lease").Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(leaseErr) {
			leaseErr = nil // it had not come so far
		}
		if err := errors.Join(nodeErr, leaseErr); err != nil {
			fmt.Fprintln(os.Stderr, "left behind:", err)
		}
	}
}
