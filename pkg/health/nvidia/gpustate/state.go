// Package gpustate is what the driver's management library (NVML) says about the
// GPUs of a node at one moment, and what follows from it. It is plain Go: reading
// the library is nvmlhelper's part.
package gpustate

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
)

// State is a sample of all GPUs. Values that a GPU or a driver does not offer are
// nil: absent is neither good nor bad.
type State struct {
	// At is when it was taken.
	At time.Time `json:"at"`
	// Driver and Library are the versions of the kernel module and of NVML.
	Driver  string `json:"driver,omitempty"`
	Library string `json:"library,omitempty"`
	// GPUs are the GPUs that NVML counts, also those that it can no longer reach.
	GPUs []GPU `json:"gpus"`
}

// GPU is the state of one GPU.
type GPU struct {
	Index int `json:"index"`
	// UUID and PCI (canonical) are empty when NVML cannot tell them any more.
	UUID   string `json:"uuid,omitempty"`
	PCI    string `json:"pci,omitempty"`
	Serial string `json:"serial,omitempty"`
	Name   string `json:"name,omitempty"`
	// Lost says that NVML answers NVML_ERROR_GPU_IS_LOST for it, ResetRequired that it
	// answers NVML_ERROR_RESET_REQUIRED.
	Lost          bool `json:"lost,omitempty"`
	ResetRequired bool `json:"resetRequired,omitempty"`

	// Temperature and SlowdownTemperature are in degrees Celsius.
	Temperature         *uint32 `json:"temperature,omitempty"`
	SlowdownTemperature *uint32 `json:"slowdownTemperature,omitempty"`
	ECC                 *ECC    `json:"ecc,omitempty"`
	Rows                *Rows   `json:"rows,omitempty"`
	// RetiredPages is how many pages of memory are retired (before Ampere).
	RetiredPages *int `json:"retiredPages,omitempty"`
	// Links are the NVLinks by number; true is active.
	Links  map[int]bool `json:"links,omitempty"`
	Fabric *Fabric      `json:"fabric,omitempty"`
	// ClockReasons is the mask nvmlClocksEventReason*.
	ClockReasons *uint64 `json:"clockReasons,omitempty"`
	// PCIeReplays counts since the driver was loaded.
	PCIeReplays *uint64                `json:"pcieReplays,omitempty"`
	Recovery    *nvidia.RecoveryAction `json:"recovery,omitempty"`
	Persistence *bool                  `json:"persistence,omitempty"`
	// MIG says that the GPU is partitioned; its NVLinks are then down by design.
	MIG bool `json:"mig,omitempty"`
}

// ECC are error counts: volatile since the driver was loaded, aggregate since the
// GPU was made.
type ECC struct {
	VolatileCorrected    uint64 `json:"volatileCorrected"`
	VolatileUncorrected  uint64 `json:"volatileUncorrected"`
	AggregateCorrected   uint64 `json:"aggregateCorrected"`
	AggregateUncorrected uint64 `json:"aggregateUncorrected"`
}

// Rows are the rows of memory that were replaced by spare ones (Ampere and later).
type Rows struct {
	Correctable   int  `json:"correctable"`
	Uncorrectable int  `json:"uncorrectable"`
	Pending       bool `json:"pending"`
	Failure       bool `json:"failure"`
	// Exhausted is how many banks have no spare row left, when known.
	Exhausted *uint32 `json:"exhausted,omitempty"`
}

// Subject is the subject of findings about the GPU, as the kernel's log has it.
func (g GPU) Subject() string {
	if g.UUID == "" && g.PCI == "" {
		return "GPU index " + itoa(g.Index)
	}
	return nvidia.Subject(g.UUID, g.PCI)
}

// find returns the GPU in s that is the same as g, nil when there is none.
func (s *State) find(g GPU) *GPU {
	if s == nil {
		return nil
	}
	for i := range s.GPUs {
		o := &s.GPUs[i]
		if g.UUID != "" && o.UUID == g.UUID || g.PCI != "" && o.PCI == g.PCI {
			return o
		}
	}
	return nil
}

// NeedsRelease says that a GPU waits for a repair that an open NVML client would
// block: then NVML must be closed between samples.
func (s State) NeedsRelease() bool {
	for _, g := range s.GPUs {
		if g.Lost || g.ResetRequired || g.Recovery != nil && *g.Recovery != nvidia.RecoveryNone {
			return true
		}
	}
	return false
}
