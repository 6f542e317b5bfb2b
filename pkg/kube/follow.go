package kube

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Object is a pointer to an API type.
type Object interface {
	runtime.Object
	metav1.Object
}

// Follow watches the one cluster-scoped object of resource with that name, and no
// other, until ctx ends. It calls onChange from one goroutine at a time: with the
// object at first and after each change, and with the zero T when there is no such
// object (at first too) or when it is deleted. The object is the callee's. Outages
// are waited out with backoff, and a change that was missed is told afterwards; an
// object that was deleted and made anew meanwhile shows only by its new UID.
func Follow[T Object](ctx context.Context, client rest.Interface, resource, name string, prototype T, log *slog.Logger, onChange func(T)) {
	lw := cache.NewListWatchFromClient(client, resource, metav1.NamespaceNone, fields.OneTermEqualSelector("metadata.name", name))
	list, watchFunc := lw.ListWithContextFunc, lw.WatchFuncWithContext
	lw.ListWithContextFunc = func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		obj, err := list(ctx, opts)
		return obj, hint(resource, err)
	}
	lw.WatchFuncWithContext = func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		w, err := watchFunc(ctx, opts)
		return w, hint(resource, err)
	}
	logger := logr.FromSlogHandler(log.Handler())
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client), prototype,
		&follower[T]{onChange: onChange}, cache.ReflectorOptions{
			Name:   resource + "/" + name,
			Logger: &logger,
			// Jittered up to twice this by the reflector.
			MinWatchTimeout: 10 * time.Minute,
		})
	r.RunWithContext(logr.NewContext(ctx, logger))
}

// hint says what to do about an API server that does not serve a resource. The
// reflector goes by other kinds of errors and gets them as they are.
func hint(resource string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the API server serves no %s: install the CustomResourceDefinition, which comes with the agent; trying again meanwhile: %w", resource, err)
	}
	return err
}

// follower is the reflector's store: it keeps nothing and passes everything on.
type follower[T Object] struct {
	onChange func(T)
}

func (f *follower[T]) Add(obj any) error    { f.tell(obj); return nil }
func (f *follower[T]) Update(obj any) error { f.tell(obj); return nil }

func (f *follower[T]) Delete(any) error {
	var none T
	f.onChange(none)
	return nil
}

func (f *follower[T]) Replace(list []any, _ string) error {
	if len(list) == 0 {
		return f.Delete(nil)
	}
	f.tell(list[0])
	return nil
}

func (f *follower[T]) Resync() error { return nil }

func (f *follower[T]) tell(obj any) {
	if t, ok := obj.(T); ok {
		f.onChange(t)
	}
}
