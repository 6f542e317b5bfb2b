// Package kube talks to the API server with as little memory as client-go allows:
// REST clients over a scheme of the few types that the agent reads and writes.
//
// It stays away from client-go's generated clientset and its scheme on purpose:
// linking them costs a process about ten MiB for types that a node never needs.
package kube

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// NewScheme returns a scheme of the types that the agent uses: Node, Event of the
// core group, Event of events.k8s.io, NodeDiagnostic, and their lists.
func NewScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion,
		&corev1.Node{}, &corev1.NodeList{}, &corev1.Event{}, &corev1.EventList{})
	s.AddKnownTypes(eventsv1.SchemeGroupVersion, &eventsv1.Event{}, &eventsv1.EventList{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	metav1.AddToGroupVersion(s, eventsv1.SchemeGroupVersion)
	// AddToScheme never fails: its error is there for runtime.SchemeBuilder.
	_ = v1alpha1.AddToScheme(s)
	return s
}

// NewClient returns a client of the group and version gv, one of those that
// NewScheme knows. It shares connections with other clients of the same cfg and
// leaves cfg as it is. Requests are named by Resource("nodes"), Name("x") and so
// on, and their options go through VersionedParams with metav1.ParameterCodec.
func NewClient(cfg *rest.Config, gv schema.GroupVersion) (rest.Interface, error) {
	s := NewScheme()
	if !s.IsVersionRegistered(gv) {
		return nil, fmt.Errorf("kube: no types of %s are known to this program", gv)
	}
	c := rest.CopyConfig(cfg)
	c.GroupVersion = &gv
	c.APIPath = "/apis"
	if gv.Group == "" {
		c.APIPath = "/api"
	}
	c.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	// The built-in groups speak protobuf, which costs less to decode. Custom
	// resources are JSON only.
	c.ContentType = runtime.ContentTypeJSON
	c.AcceptContentTypes = runtime.ContentTypeJSON
	if gv.Group != v1alpha1.GroupVersion().Group {
		c.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	return rest.RESTClientFor(c)
}
