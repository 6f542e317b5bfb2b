package ekslogs

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// State says how it went for a node.
type State string

// States of a node's result.
const (
	// StateSuccess and StateSuccessWithErrors: the bundle is here, whole and verified;
	// with errors, some of its sources could not be read.
	StateSuccess           State = "Success"
	StateSuccessWithErrors State = "SuccessWithErrors"
	// StateSkipped: a bundle was here already and --skip-existing was given.
	StateSkipped State = "Skipped"
	// StateFailed: there is no bundle.
	StateFailed State = "Failed"
)

// Result is what came of one node. It is part of the output of -o json and yaml.
type Result struct {
	Node  string `json:"node"`
	State State  `json:"state"`
	// File is the bundle and Folder what it was extracted into, as paths on this
	// machine.
	File   string `json:"file,omitempty"`
	Folder string `json:"folder,omitempty"`
	// Bytes is the size of the bundle and SHA256 its hash, in hex.
	Bytes  int64  `json:"bytes,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	// Verified is "manifest" if every file in the bundle has the hash that the
	// manifest says, and "archive" if it has no manifest and could only be read through.
	Verified string `json:"verified,omitempty"`
	// Seconds is how long all of it took.
	Seconds float64 `json:"seconds"`
	// AgentVersion is of the agent that collected, if it tells.
	AgentVersion string `json:"agentVersion,omitempty"`
	// Items counts the items in the manifest, and Errors those that failed; both are
	// absent without a manifest.
	Items  *int         `json:"items,omitempty"`
	Errors *int         `json:"errors,omitempty"`
	Failed []FailedItem `json:"failed,omitempty"`
	// Message is what the agent says of its capture.
	Message string `json:"message,omitempty"`
	// Error is why there is no bundle.
	Error string `json:"error,omitempty"`
	// StartedAt and FinishedAt are the agent's times of the capture.
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	FinishedAt *time.Time `json:"finishedAt,omitempty"`

	err error
}

// FailedItem is an item of a bundle that could not be collected.
type FailedItem struct {
	Path  string `json:"path"`
	Error string `json:"error,omitempty"`
}

// BundleList is the output of -o json and yaml. It is API: fields are added, and not
// renamed or removed within v1.
type BundleList struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Items      []Result `json:"items"`
}

func (r *Result) fail(err error) {
	r.State, r.err, r.Error = StateFailed, err, err.Error()
}

func (r *Result) verified(rep *bundle.Report) {
	if rep == nil || rep.Manifest == nil {
		r.Verified = "archive"
		return
	}
	r.Verified = "manifest"
	if rep.Manifest.AgentVersion != "" {
		r.AgentVersion = rep.Manifest.AgentVersion
	}
	items, failed := len(rep.Manifest.Items), rep.Manifest.Count(bundle.StatusFailed)
	r.Items, r.Errors = &items, &failed
	for _, it := range rep.Manifest.Items {
		if it.Status == bundle.StatusFailed {
			r.Failed = append(r.Failed, FailedItem{Path: it.Path, Error: it.Error})
		}
	}
}
