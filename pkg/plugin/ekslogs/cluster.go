package ekslogs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/internal/version"
	"github.com/ekslogs/ekslogs/pkg/kube"
)

// defaultRequestTimeout bounds one request that is no stream, unless
// --request-timeout does.
const defaultRequestTimeout = 30 * time.Second

// cluster is the API server as this plugin sees it.
type cluster struct {
	core, diagnostics rest.Interface
	// streams has no bound on the whole of a response.
	streams        *http.Client
	requestTimeout time.Duration
}

// connect makes clients from kubeconfig and flags. It asks the cluster nothing.
func connect(access *genericclioptions.ConfigFlags) (*cluster, error) {
	cfg, err := access.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("no way to a cluster: %w", err)
	}
	return newCluster(cfg)
}

func newCluster(cfg *rest.Config) (*cluster, error) {
	cfg = rest.CopyConfig(cfg)
	c := &cluster{requestTimeout: cfg.Timeout}
	if c.requestTimeout <= 0 {
		c.requestTimeout = defaultRequestTimeout
	}
	// It would cut watches and downloads: each request is bounded by its context.
	cfg.Timeout = 0
	// The API server protects itself; the client's own limit of 5 requests a second
	// would only make twenty nodes wait for one another.
	cfg.QPS = -1
	cfg.UserAgent = "kubectl-ekslogs/" + version.Version()
	cfg.WarningHandler = rest.NoWarnings{}
	// A bundle is gzip already, and must arrive as it is.
	cfg.DisableCompression = true
	var err error
	if c.streams, err = rest.HTTPClientFor(cfg); err != nil {
		return nil, fmt.Errorf("no way to a cluster: %w", err)
	}
	if c.core, err = kube.NewClient(cfg, corev1.SchemeGroupVersion); err != nil {
		return nil, fmt.Errorf("no way to a cluster: %w", err)
	}
	if c.diagnostics, err = kube.NewClient(cfg, v1alpha1.GroupVersion()); err != nil {
		return nil, fmt.Errorf("no way to a cluster: %w", err)
	}
	return c, nil
}

func (c *cluster) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.requestTimeout)
}

// installed reports whether the API of NodeDiagnostics is there. It errs on the side
// of true: who may not ask is told by the first real request.
func (c *cluster) installed(ctx context.Context) (bool, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	err := c.diagnostics.Get().AbsPath("/apis", v1alpha1.GroupVersion().Group, v1alpha1.GroupVersion().Version).Do(ctx).Error()
	var answered apierrors.APIStatus
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsUnauthorized(err):
		return true, explain(err, "get", v1alpha1.Resource)
	case errors.As(err, &answered):
		return true, nil
	}
	return true, err
}

func (c *cluster) node(ctx context.Context, name string) (*corev1.Node, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	node := &corev1.Node{}
	return node, c.core.Get().Resource("nodes").Name(name).Do(ctx).Into(node)
}

// nodeMeta lists the metadata of the nodes that match selector, page by page: whole
// Nodes of a large cluster are tens of megabytes.
func (c *cluster) nodeMeta(ctx context.Context, selector string) ([]metav1.PartialObjectMetadata, error) {
	var all []metav1.PartialObjectMetadata
	opts := &metav1.ListOptions{LabelSelector: selector, Limit: 500}
	for {
		page := &metav1.PartialObjectMetadataList{}
		if err := c.listJSON(ctx, "nodes", opts, "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json", page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if page.Continue == "" {
			return all, nil
		}
		opts.Continue = page.Continue
	}
}

func (c *cluster) listJSON(ctx context.Context, resource string, opts *metav1.ListOptions, accept string, into any) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	b, err := c.core.Get().Resource(resource).SetHeader("Accept", accept).
		VersionedParams(opts, metav1.ParameterCodec).Do(ctx).Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("list of %s: %w", resource, err)
	}
	return nil
}

// mayDownload asks the API server whether the user may read through the kubelet of
// the node. An error means that it would not say.
func (c *cluster) mayDownload(ctx context.Context, node string) (bool, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	review := &authv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authv1.ResourceAttributes{
			Verb: "get", Version: "v1", Resource: "nodes", Subresource: "proxy", Name: node,
		}},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return false, err
	}
	b, err := c.core.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").
		Body(body).Do(ctx).Raw()
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(b, review); err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// bundleURL is where the node's kubelet serves a file of the folder of bundles.
func (c *cluster) bundleURL(node, file string) string {
	return c.core.Get().Resource("nodes").Name(node).SubResource("proxy").Suffix("logs", "support", file).URL().String()
}

// plural is "1 node", "2 nodes".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
