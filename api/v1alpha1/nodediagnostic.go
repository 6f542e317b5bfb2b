package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NodeDiagnostic asks the agent of the node that it is named after for captures.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="STATE",type=string,JSONPath=`.status.conditions[?(@.type=="LogCaptured")].reason`,description="Running or Completed"
// +kubebuilder:printcolumn:name="REASON",type=string,JSONPath=`.status.captureStatuses[?(@.type=="Log")].state.completed.reason`,description="Success, SuccessWithErrors or Failure"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.captureStatuses[?(@.type=="Log")].state.completed.message`,description="What happened"
type NodeDiagnostic struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeDiagnosticSpec   `json:"spec,omitempty"`
	Status NodeDiagnosticStatus `json:"status,omitempty"`
}

// NodeDiagnosticList is a list of NodeDiagnostics.
//
// +kubebuilder:object:root=true
type NodeDiagnosticList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeDiagnostic `json:"items"`
}

// NodeDiagnosticSpec says what to capture. Each part is optional.
type NodeDiagnosticSpec struct {
	// LogCapture asks for a log bundle.
	// +optional
	LogCapture *LogCapture `json:"logCapture,omitempty"`
	// PacketCapture asks for a capture of network traffic.
	// +optional
	PacketCapture *PacketCapture `json:"packetCapture,omitempty"`
}

// LogCapture asks for the node's logs and state as one gzip-compressed tar archive.
type LogCapture struct {
	// Destination is where the archive goes: the word "node" keeps it on the node,
	// from where the kubelet's log endpoint serves it; an http or https URL is sent
	// the archive by PUT (for example a presigned S3 URL).
	// +kubebuilder:validation:XValidation:rule="self == 'node' || self.matches('^https?://[^/?#\\\\s]+\\\\S*$')",message="must be \"node\", to keep the bundle on the node, or an http:// or https:// URL to PUT it to"
	Destination string `json:"destination"`
	// Categories are the groups of sources to collect. Empty means All.
	// +optional
	// +kubebuilder:default={All}
	Categories []LogCategory `json:"categories,omitempty"`
}

// DestinationNode is the LogCapture destination that keeps the bundle on the node.
const DestinationNode = "node"

// LogCategory is a group of sources of a log bundle.
//
// +kubebuilder:validation:Enum=Base;Device;Networking;Runtime;System;All
type LogCategory string

// The categories of a log bundle.
const (
	LogCategoryBase       LogCategory = "Base"
	LogCategoryDevice     LogCategory = "Device"
	LogCategoryNetworking LogCategory = "Networking"
	LogCategoryRuntime    LogCategory = "Runtime"
	LogCategorySystem     LogCategory = "System"
	LogCategoryAll        LogCategory = "All"
)

// LogCategories lists the categories, All last.
func LogCategories() []LogCategory {
	return []LogCategory{
		LogCategoryBase, LogCategoryDevice, LogCategoryNetworking,
		LogCategoryRuntime, LogCategorySystem, LogCategoryAll,
	}
}

// PacketCaptureMode names a capture program.
//
// +kubebuilder:validation:Enum=tcpdump
type PacketCaptureMode string

// PacketCaptureModeTcpdump captures with tcpdump.
const PacketCaptureModeTcpdump PacketCaptureMode = "tcpdump"

// PacketCapture asks for a capture of network traffic, uploaded in chunks.
type PacketCapture struct {
	// Mode names the capture program.
	// +optional
	// +kubebuilder:default=tcpdump
	Mode PacketCaptureMode `json:"mode,omitempty"`
	// Upload is the presigned POST that takes the chunks.
	Upload PacketCaptureUpload `json:"upload"`
	// Interface is the network interface to capture on. Empty means all.
	// +optional
	Interface string `json:"interface,omitempty"`
	// Duration is how long to capture: a whole number and a unit, s, m or h.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+[smh]$')",message="must be a whole number followed by s, m or h, for example 30s or 5m"
	Duration string `json:"duration"`
	// Filter is a capture filter in tcpdump's syntax. Empty captures all.
	// +optional
	Filter string `json:"filter,omitempty"`
	// ChunkSizeMB is the size, in MB, at which a new capture file begins.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ChunkSizeMB int `json:"chunkSizeMB,omitempty"`
}

// PacketCaptureUpload is a presigned POST form.
type PacketCaptureUpload struct {
	// URL is the endpoint to POST to.
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#\\\\s]+\\\\S*$')",message="must be an http:// or https:// URL"
	URL string `json:"url"`
	// Fields are the form's fields. They hold a signature: treat them as a secret.
	Fields map[string]string `json:"fields"`
}
