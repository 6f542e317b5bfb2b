// Package cluster reads Nodes, their Events and their pods from an API server in as
// little memory as it allows: one object at a time, as protobuf.
package cluster

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/internal/version"
	"github.com/ekslogs/ekslogs/pkg/kube"
)

// defaultRequestTimeout bounds how long the API server may be silent, unless
// --request-timeout does.
const defaultRequestTimeout = 30 * time.Second

// Cluster is the API server as this plugin sees it. It is safe for concurrent use.
type Cluster struct {
	core, diagnostics rest.Interface
	host              string
	timeout           time.Duration
	clock             *serverClock
}

// Connect makes clients from kubeconfig and flags. It asks the cluster nothing.
func Connect(access *genericclioptions.ConfigFlags) (*Cluster, error) {
	cfg, err := access.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("no way to a cluster: %w", err)
	}
	return New(cfg)
}

// New makes clients from cfg, which stays as it is.
func New(cfg *rest.Config) (*Cluster, error) {
	cfg = rest.CopyConfig(cfg)
	c := &Cluster{host: cfg.Host, timeout: cfg.Timeout, clock: &serverClock{}}
	if c.timeout <= 0 {
		c.timeout = defaultRequestTimeout
	}
	// It would cut watches: requests are bounded by their contexts.
	cfg.Timeout = 0
	cfg.QPS = -1
	cfg.UserAgent = "kubectl-health/" + version.Version()
	cfg.WarningHandler = rest.NoWarnings{}
	cfg.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &dated{rt, c.clock} })
	var err error
	if c.diagnostics, err = kube.NewClient(cfg, v1alpha1.GroupVersion()); err != nil {
		return nil, fmt.Errorf("no way to a cluster: %w", err)
	}
	if c.core, err = coreClient(cfg); err != nil {
		return nil, fmt.Errorf("no way to a cluster: %w", err)
	}
	return c, nil
}

// coreClient reads the few types of the core group that this plugin shows.
func coreClient(cfg *rest.Config) (rest.Interface, error) {
	s := runtime.NewScheme()
	gv := corev1.SchemeGroupVersion
	s.AddKnownTypes(gv, &corev1.Node{}, &corev1.NodeList{}, &corev1.Event{}, &corev1.EventList{}, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(s, gv)
	c := rest.CopyConfig(cfg)
	c.GroupVersion, c.APIPath = &gv, "/api"
	c.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return rest.RESTClientFor(c)
}

// Now is the time of the API server, by the Date of its last answer: ages are
// differences to stamps of the cluster, and this computer's clock may be wrong.
func (c *Cluster) Now() time.Time { return time.Now().Add(c.clock.skew()) }

// Skew is how far this computer's clock is behind the API server's. It is 0 when the
// two differ by less than Date, which has whole seconds, can tell.
func (c *Cluster) Skew() time.Duration { return c.clock.skew() }

// serverClock is how far the API server's clock is ahead of ours.
type serverClock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (s *serverClock) skew() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offset
}

// observe takes the Date of an answer that was under way between two moments of ours.
func (s *serverClock) observe(date string, asked, answered time.Time) {
	t, err := http.ParseTime(date)
	if err != nil {
		return
	}
	// The server's moment was in [t, t+1s), and ours in [asked, answered].
	var offset time.Duration
	switch low, high := t.Sub(answered), t.Add(time.Second).Sub(asked); {
	case low > 0:
		offset = low
	case high < 0:
		offset = high
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset = offset
}

type dated struct {
	next  http.RoundTripper
	clock *serverClock
}

func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := time.Now()
	resp, err := d.next.RoundTrip(r)
	if err == nil {
		d.clock.observe(resp.Header.Get("Date"), asked, time.Now())
	}
	return resp, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (d *dated) WrappedRoundTripper() http.RoundTripper { return d.next }
