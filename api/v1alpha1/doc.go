// Package v1alpha1 holds the NodeDiagnostic API: a request, named after a node,
// to capture that node's logs or packets, and the state of the captures.
//
// The wire format is that of the EKS node monitoring agent, field for field, so
// that either agent serves either client. A change here is a breaking change.
//
// +kubebuilder:object:generate=true
// +groupName=eks.amazonaws.com
package v1alpha1
