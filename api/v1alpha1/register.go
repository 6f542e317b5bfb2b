package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Kind is the kind of a NodeDiagnostic object.
	Kind = "NodeDiagnostic"
	// Resource is the plural name under which the API server serves NodeDiagnostics.
	Resource = "nodediagnostics"
)

// GroupVersion is the API group and version of this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: "eks.amazonaws.com", Version: "v1alpha1"}
}

// GroupVersionResource names the resource for REST and dynamic clients.
func GroupVersionResource() schema.GroupVersionResource {
	return GroupVersion().WithResource(Resource)
}

// AddToScheme registers the package's types. It never fails; the error is there
// for runtime.SchemeBuilder.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &NodeDiagnostic{}, &NodeDiagnosticList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
