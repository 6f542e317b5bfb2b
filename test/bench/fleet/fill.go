package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/test/fleet"
)

const (
	parallel  = 16
	label     = fleet.Label + "=large"
	eventMark = fleet.Label + "=bench-event"
)

// filler makes nodes and Events, and removes them.
type filler struct {
	client kubernetes.Interface
}

func newFiller(cfg *rest.Config) (*filler, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.ContentType = runtime.ContentTypeProtobuf
	cfg.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(cfg)
	return &filler{client}, err
}

// fill makes nodes as their kubelets would, with their status, and Events: a tenth
// about nodes, the rest about pods, half of which share the namespace with those.
func (f *filler) fill(ctx context.Context, nodes, events int) error {
	if err := f.removeIn(ctx); err != nil {
		return err
	}
	now := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range nodes {
		group.Go(func() error {
			_, err := f.client.CoreV1().Nodes().Create(ctx, fleet.Large(now, i), metav1.CreateOptions{})
			return err
		})
	}
	for i := range events {
		group.Go(func() error {
			e := event(now, i, nodes)
			_, err := f.client.CoreV1().Events(e.Namespace).Create(ctx, e, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

func event(now time.Time, i, nodes int) *corev1.Event {
	e := fleet.Event(now, fleet.Large(now, i%max(1, nodes)).Name, "AppCrash", "python[4711] segfault in libtorch.so")
	e.Name, e.Labels = fmt.Sprintf("bench-%06d", i), map[string]string{fleet.Label: "bench-event"}
	if i%10 == 0 {
		return e
	}
	if i%2 == 0 {
		e.Namespace = "kube-public"
	}
	e.InvolvedObject = corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.Namespace, Name: fmt.Sprintf("pod-%d", i)}
	e.Reason, e.ReportingController, e.Source.Component = "BackOff", "kubelet", "kubelet"
	return e
}

// update gives nodes one after another a new heartbeat, at that rate, and returns how
// many it updated.
func (f *filler) update(ctx context.Context, nodes, perSecond int, d time.Duration) (int, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	end := time.After(d)
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return i, errors.Join(ctx.Err(), group.Wait())
		case <-end:
			return i, group.Wait()
		case now := <-tick.C:
			name := fleet.Large(now, i%max(1, nodes)).Name
			group.Go(func() error {
				patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"KernelReady","lastHeartbeatTime":%q}]}}`, now.UTC().Format(time.RFC3339))
				_, err := f.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
				return err
			})
		}
	}
}

// remove removes everything that fill made, whatever became of it.
func (f *filler) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return f.removeIn(ctx)
}

func (f *filler) removeIn(ctx context.Context) error {
	var errs []error
	errs = append(errs, f.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: label}))
	for _, namespace := range []string{"default", "kube-public"} {
		errs = append(errs, f.client.CoreV1().Events(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: eventMark}))
	}
	return errors.Join(errs...)
}
