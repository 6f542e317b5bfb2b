package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/pager"
)

const nodes = "nodes"

// errNoStream says that the API server does not list by streaming.
var errNoStream = errors.New("no streaming list")

// Nodes calls each with every Node that matches the label selector, one at a time. The
// Node is the callee's.
//
// It has the API server stream the list, object by object, where it can (WatchList,
// KEP-3157), and else asks for pages of 500. Pages go without a resource version: at
// resourceVersion=0 the limit is ignored, and one body of tens of megabytes comes.
func (c *Cluster) Nodes(ctx context.Context, selector string, each func(*corev1.Node)) error {
	bounded, heard, end := c.bound(ctx)
	defer end()
	err := c.stream(bounded, selector, heard, each)
	if errors.Is(err, errNoStream) && bounded.Err() == nil {
		err = c.pages(bounded, selector, heard, each)
	}
	return c.explain(bounded, err, "list", nodes)
}

func (c *Cluster) stream(ctx context.Context, selector string, heard func(), each func(*corev1.Node)) error {
	yes := true
	w, err := c.core.Get().Resource(nodes).VersionedParams(&metav1.ListOptions{
		LabelSelector: selector, Watch: true, AllowWatchBookmarks: true, SendInitialEvents: &yes,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}, metav1.ParameterCodec).Watch(ctx)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return errNoStream
	case err != nil:
		return err
	}
	defer w.Stop()
	told := false
	for e := range w.ResultChan() {
		heard()
		switch e.Type {
		case watch.Added, watch.Modified:
			if n, ok := e.Object.(*corev1.Node); ok {
				told = true
				each(n)
			}
		case watch.Bookmark:
			if n, ok := e.Object.(*corev1.Node); ok && n.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
				return nil
			}
		case watch.Error:
			return apierrors.FromObject(e.Object)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if told {
		return errors.New("the API server ended the list of nodes half-way: try again")
	}
	// client-go makes an empty watch of an answer that was cut, among others.
	return errNoStream
}

func (c *Cluster) pages(ctx context.Context, selector string, heard func(), each func(*corev1.Node)) error {
	p := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		list := &corev1.NodeList{}
		err := c.core.Get().Resource(nodes).VersionedParams(&opts, metav1.ParameterCodec).Do(ctx).Into(list)
		heard()
		return list, err
	})
	// One page in the making and one in hand.
	p.PageBufferSize = 1
	return p.EachListItem(ctx, metav1.ListOptions{LabelSelector: selector}, func(obj runtime.Object) error {
		if n, ok := obj.(*corev1.Node); ok {
			each(n)
		}
		return nil
	})
}

// Node returns the Node of that name.
func (c *Cluster) Node(ctx context.Context, name string) (*corev1.Node, error) {
	ctx, _, end := c.bound(ctx)
	defer end()
	n := &corev1.Node{}
	err := c.core.Get().Resource(nodes).Name(name).Do(ctx).Into(n)
	if apierrors.IsNotFound(err) {
		return nil, err
	}
	return n, c.explain(ctx, err, "get", nodes)
}

// Metadata calls each with the metadata of the Nodes that match the selector: what
// completion needs, at a tenth of the size. limit bounds how many there may be.
func (c *Cluster) Metadata(ctx context.Context, selector string, limit int, each func(*metav1.ObjectMeta)) error {
	ctx, heard, end := c.bound(ctx)
	defer end()
	opts := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	for seen := 0; seen < limit; {
		b, err := c.core.Get().Resource(nodes).VersionedParams(&opts, metav1.ParameterCodec).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Do(ctx).Raw()
		if err != nil {
			return c.explain(ctx, err, "list", nodes)
		}
		heard()
		page := &metav1.PartialObjectMetadataList{}
		if err := decodeJSON(b, page); err != nil {
			return fmt.Errorf("list of nodes: %w", err)
		}
		for i := range page.Items {
			each(&page.Items[i].ObjectMeta)
		}
		seen += len(page.Items)
		if opts.Continue = page.Continue; opts.Continue == "" {
			return nil
		}
	}
	return nil
}

// Reachable asks for one node, and returns why nothing would come of asking for more.
func (c *Cluster) Reachable(ctx context.Context) error {
	ctx, _, end := c.bound(ctx)
	defer end()
	err := c.core.Get().Resource(nodes).VersionedParams(&metav1.ListOptions{Limit: 1}, metav1.ParameterCodec).Do(ctx).Error()
	return c.explain(ctx, err, "list", nodes)
}

// minWatch is how long a watch lasts before it is renewed, jittered up to twice this.
const minWatch = 10 * time.Minute
