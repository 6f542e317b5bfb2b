package cluster

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
)

const (
	// eventNamespace is where Events about objects without a namespace live.
	eventNamespace = "default"
	// maxEvents bounds how many Events about nodes are read.
	maxEvents = 50_000
)

// EventQuery says which Events to read.
type EventQuery struct {
	// Node bounds them to one node; empty is all.
	Node string
	// Warnings leaves out the Normal ones, such as recoveries.
	Warnings bool
}

// Events are what the cluster remembers about nodes.
type Events struct {
	Occurrences []fleet.Occurrence
	// Oldest is when the oldest Event about a node was made, whoever wrote it; zero
	// without any. What happened before is forgotten.
	Oldest time.Time
	// Cut says that there were more than are read.
	Cut bool
}

var errEnough = errors.New("enough")

// Events reads the Events about nodes that agents wrote. The Events of pods, of which
// there are far more, stay where they are: those of nodes have a namespace of their own.
func (c *Cluster) Events(ctx context.Context, q EventQuery, catalog *health.Catalog) (Events, error) {
	bounded, heard, end := c.bound(ctx)
	defer end()
	selector := fields.Set{"involvedObject.kind": "Node"}
	if q.Node != "" {
		selector["involvedObject.name"] = q.Node
	}
	if q.Warnings {
		selector["type"] = corev1.EventTypeWarning
	}
	p := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		list := &corev1.EventList{}
		err := c.core.Get().Namespace(eventNamespace).Resource("events").VersionedParams(&opts, metav1.ParameterCodec).Do(ctx).Into(list)
		heard()
		return list, err
	})
	p.PageBufferSize = 1
	var out Events
	seen := 0
	err := p.EachListItem(bounded, metav1.ListOptions{FieldSelector: selector.String()}, func(obj runtime.Object) error {
		e, ok := obj.(*corev1.Event)
		if !ok {
			return nil
		}
		if seen++; seen > maxEvents {
			return errEnough
		}
		if made := e.CreationTimestamp.Time; out.Oldest.IsZero() || made.Before(out.Oldest) {
			out.Oldest = made
		}
		if o, ours := fleet.FromEvent(e, catalog); ours {
			out.Occurrences = append(out.Occurrences, o)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		out.Cut, err = true, nil
	}
	return out, c.explain(bounded, err, "list", "events")
}
