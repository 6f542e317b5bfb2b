package cluster

import (
	"context"
	"encoding/json"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
)

// Watcher is told of what happens. Its methods are called from one goroutine at a time.
type Watcher interface {
	// Replace gives all nodes: at first, and after an outage.
	Replace([]*fleet.Facts)
	// Set gives a node that is new or has changed, Remove the name of one that is gone.
	Set(*fleet.Facts)
	Remove(name string)
	// Contact gives the error that keeps the API server from telling more, and nil when
	// it tells again.
	Contact(error)
}

// Follow watches the Nodes that match the selector until ctx ends. Outages are waited
// out with backoff.
func (c *Cluster) Follow(ctx context.Context, selector string, keep fleet.Keep, to Watcher) {
	options := func(o *metav1.ListOptions) { o.LabelSelector = selector }
	lw := cache.NewFilteredListWatchFromClient(c.core, nodes, metav1.NamespaceNone, options)
	list, watchFunc := lw.ListWithContextFunc, lw.WatchFuncWithContext
	lw.ListWithContextFunc = func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		if opts.ResourceVersion == "0" {
			opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
		}
		obj, err := list(ctx, opts)
		to.Contact(c.explain(ctx, err, "list", nodes))
		return obj, err
	}
	lw.WatchFuncWithContext = func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		w, err := watchFunc(ctx, opts)
		to.Contact(c.explain(ctx, err, "watch", nodes))
		return w, err
	}
	logger := logr.Discard()
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, c.core), &corev1.Node{},
		&follower{keep: keep, to: to}, cache.ReflectorOptions{Name: nodes, Logger: &logger, MinWatchTimeout: minWatch})
	r.WatchListPageSize = 500
	r.RunWithContext(logr.NewContext(ctx, logger))
}

// follower is the reflector's store: it keeps nothing and passes everything on.
type follower struct {
	keep fleet.Keep
	to   Watcher
}

// Transformer throws away what no fact is taken from, before the reflector gathers
// whole lists.
func (f *follower) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		if n, ok := obj.(*corev1.Node); ok {
			n.Status.Images, n.Status.VolumesAttached, n.Status.VolumesInUse = nil, nil, nil
			for i := range n.ManagedFields {
				n.ManagedFields[i].FieldsV1 = nil
			}
		}
		return obj, nil
	}
}

func (f *follower) Add(obj any) error { return f.Update(obj) }

func (f *follower) Update(obj any) error {
	if n, ok := obj.(*corev1.Node); ok {
		f.to.Set(fleet.FromNode(n, f.keep))
	}
	return nil
}

func (f *follower) Delete(obj any) error {
	if n, ok := obj.(*corev1.Node); ok {
		f.to.Remove(n.Name)
	}
	return nil
}

func (f *follower) Replace(list []any, _ string) error {
	all := make([]*fleet.Facts, 0, len(list))
	for _, obj := range list {
		if n, ok := obj.(*corev1.Node); ok {
			all = append(all, fleet.FromNode(n, f.keep))
		}
	}
	f.to.Replace(all)
	return nil
}

func (f *follower) Resync() error { return nil }

func decodeJSON(b []byte, into any) error { return json.Unmarshal(b, into) }
