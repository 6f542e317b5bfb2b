package cluster

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
)

// EventWatcher is told of the Events about nodes that agents write. Its methods are
// called from one goroutine at a time.
type EventWatcher interface {
	// ReplaceEvents gives all of them, by the Event's name, SetEvent one that is new or
	// was seen again, RemoveEvent the name of one that the cluster forgot.
	ReplaceEvents(map[string]fleet.Occurrence)
	SetEvent(name string, o fleet.Occurrence)
	RemoveEvent(name string)
	// EventContact gives the error that keeps the API server from telling more.
	EventContact(error)
}

// FollowEvents watches Warning Events about nodes until ctx ends.
func (c *Cluster) FollowEvents(ctx context.Context, catalog *health.Catalog, to EventWatcher) {
	selector := fields.Set{"involvedObject.kind": "Node", "type": corev1.EventTypeWarning}.String()
	lw := cache.NewFilteredListWatchFromClient(c.core, "events", eventNamespace, func(o *metav1.ListOptions) { o.FieldSelector = selector })
	list := lw.ListWithContextFunc
	lw.ListWithContextFunc = func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		if opts.ResourceVersion == "0" {
			opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
		}
		obj, err := list(ctx, opts)
		to.EventContact(c.explain(ctx, err, "list", "events"))
		return obj, err
	}
	logger := logr.Discard()
	r := cache.NewReflectorWithOptions(lw, &corev1.Event{}, &eventFollower{catalog, to},
		cache.ReflectorOptions{Name: "events", Logger: &logger, MinWatchTimeout: minWatch})
	r.WatchListPageSize = 500
	r.RunWithContext(logr.NewContext(ctx, logger))
}

// eventFollower is the reflector's store: it keeps nothing and passes on what counts.
type eventFollower struct {
	catalog *health.Catalog
	to      EventWatcher
}

func (f *eventFollower) Add(obj any) error { return f.Update(obj) }

func (f *eventFollower) Update(obj any) error {
	if e, ok := obj.(*corev1.Event); ok {
		if o, ours := fleet.FromEvent(e, f.catalog); ours {
			f.to.SetEvent(e.Name, o)
		}
	}
	return nil
}

func (f *eventFollower) Delete(obj any) error {
	if e, ok := obj.(*corev1.Event); ok {
		f.to.RemoveEvent(e.Name)
	}
	return nil
}

func (f *eventFollower) Replace(list []any, _ string) error {
	all := map[string]fleet.Occurrence{}
	for _, obj := range list {
		if e, ok := obj.(*corev1.Event); ok {
			if o, ours := fleet.FromEvent(e, f.catalog); ours {
				all[e.Name] = o
			}
		}
	}
	f.to.ReplaceEvents(all)
	return nil
}

func (f *eventFollower) Resync() error { return nil }
