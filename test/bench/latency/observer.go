package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/ekslogs/ekslogs/test/bench/lab"
)

// observer knows what the API server has told of a Node, and when.
type observer struct {
	client kubernetes.Interface
	node   string
	nodes  watch.Interface
	events watch.Interface

	condition corev1.NodeCondition
	notes     []string
	at        time.Time
	dropped   int
}

func newObserver(ctx context.Context, client kubernetes.Interface, node string) (*observer, error) {
	o := &observer{client: client, node: node}
	var err error
	if o.nodes, err = client.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + node}); err != nil {
		return nil, err
	}
	if o.events, err = client.EventsV1().Events("default").Watch(ctx, metav1.ListOptions{}); err != nil {
		o.nodes.Stop()
		return nil, err
	}
	return o, nil
}

func (o *observer) stop() {
	o.nodes.Stop()
	o.events.Stop()
}

func (o *observer) healthy() bool { return o.condition.Status == corev1.ConditionTrue }

func (o *observer) sick(device string) bool {
	return o.condition.Status == corev1.ConditionFalse && strings.Contains(o.condition.Message, device)
}

// told reports whether the newest Event is about the device.
func (o *observer) told(device string) bool {
	return len(o.notes) > 0 && strings.Contains(o.notes[len(o.notes)-1], device+" ")
}

// tell writes the line and returns after what time ok was.
func (o *observer) tell(ctx context.Context, line string, ok func() bool) (time.Duration, error) {
	for range 10 {
		start := time.Now()
		if err := lab.WriteKmsg(line); err != nil {
			return 0, err
		}
		err := o.await(ctx, retryAfter, ok)
		if err == nil {
			return o.at.Sub(start), nil
		}
		there, kmsgErr := lab.InKmsg(line)
		if kmsgErr != nil || ctx.Err() != nil {
			return 0, errors.Join(err, kmsgErr)
		}
		if there {
			if err := o.await(ctx, time.Minute, ok); err != nil {
				return 0, fmt.Errorf("the line is in the kernel's log: %w", err)
			}
			return o.at.Sub(start), nil
		}
		o.dropped++
	}
	return 0, errors.New("the kernel drops what is written to /dev/kmsg")
}

// await takes what the API server tells until ok, which is so since o.at.
func (o *observer) await(ctx context.Context, limit time.Duration, ok func() bool) error {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timeout.C:
			return fmt.Errorf("not seen within %s; the condition is %s: %s", limit, o.condition.Status, o.condition.Message)
		case e, open := <-o.nodes.ResultChan():
			if !open {
				return errors.New("the API server has ended the watch of the Node")
			}
			o.at = time.Now()
			o.take(e)
		case e, open := <-o.events.ResultChan():
			if !open {
				return errors.New("the API server has ended the watch of the Events")
			}
			o.at = time.Now()
			if event, is := e.Object.(*eventsv1.Event); is && e.Type == watch.Added && event.Regarding.Name == o.node {
				o.notes = append(o.notes, event.Note)
			}
		}
	}
	return nil
}

func (o *observer) take(e watch.Event) {
	node, is := e.Object.(*corev1.Node)
	if !is {
		return
	}
	for _, c := range node.Status.Conditions {
		if c.Type == "StorageReady" {
			o.condition = c
		}
	}
}

// allClear gives a person's word that the fault is over.
func (o *observer) allClear(ctx context.Context, fault string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"ekslogs.io/all-clear": fault}}})
	if err != nil {
		return err
	}
	_, err = o.client.CoreV1().Nodes().Patch(ctx, o.node, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
