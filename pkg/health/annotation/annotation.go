// Package annotation is the wire format of what the agent says on its Node beyond
// the conditions: the annotation "ekslogs.io/health". It is public API, imports
// nothing of the agent, and is what "kubectl health" reads.
package annotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const (
	// Key is the annotation of the Node that holds a Health as JSON.
	Key = "ekslogs.io/health"
	// AllClearKey is the annotation by which a person ends a fault that does not end
	// by itself. Its value is "REASON" or "REASON/SUBJECT"; the agent removes it when
	// it has obeyed.
	AllClearKey = "ekslogs.io/all-clear"
	// MaxBytes bounds the annotation's value, since it rides along with every write
	// of the Node's status.
	MaxBytes = 8 << 10
	// Version is the version of the format that this package writes.
	Version = "v1"
	// MaxIncidents is how many incidents are kept.
	MaxIncidents = 20
)

// ErrVersion is returned for a format that this build does not know.
var ErrVersion = errors.New("unknown version of the health annotation")

// MonitorState says whether a monitor watches.
type MonitorState string

// States of monitors.
const (
	// MonitorOn watches, and its required sources can be read.
	MonitorOn MonitorState = "on"
	// MonitorOff is turned off, or has no hardware to watch. It writes no condition.
	MonitorOff MonitorState = "off"
	// MonitorBlind cannot read a source that it requires: what its condition says was
	// true at the condition's last heartbeat.
	MonitorBlind MonitorState = "blind"
)

// Verdict says what a GPU needs. From least to worst: ok, warn, reset, reboot,
// replace.
type Verdict string

// Verdicts on a GPU.
const (
	VerdictOK      Verdict = "ok"
	VerdictWarn    Verdict = "warn"
	VerdictReset   Verdict = "reset"
	VerdictReboot  Verdict = "reboot"
	VerdictReplace Verdict = "replace"
)

// Health is the value of the annotation. Times have whole seconds.
type Health struct {
	// Version is the version of the format: "v1".
	Version string `json:"version"`
	// AgentVersion is the release of the agent that wrote it.
	AgentVersion string `json:"agentVersion"`
	// Instance names the process that wrote it, so that two agents on one node notice
	// each other.
	Instance string `json:"instance,omitempty"`
	// Standby names the agent that writes the conditions instead of this one. Empty
	// when this one is in charge.
	Standby string `json:"standby,omitempty"`
	// Monitors are what watches the node, sorted by name.
	Monitors []Monitor `json:"monitors,omitempty"`
	// Findings are the active faults, the worst and oldest first.
	Findings []Finding `json:"findings,omitempty"`
	// GPUs are the verdicts on each GPU, in the driver's order.
	GPUs []GPU `json:"gpus,omitempty"`
	// Incidents are the last ones, newest first.
	Incidents []Incident `json:"incidents,omitempty"`
	// Cut counts the findings and incidents that were left out for size.
	Cut int `json:"cut,omitempty"`
}

// Monitor is one part of the agent that watches.
type Monitor struct {
	// Name is "kernel", "container-runtime", "networking", "storage", "nvidia" or
	// "neuron".
	Name string `json:"name"`
	// Condition is the node condition that it writes.
	Condition string `json:"condition,omitempty"`
	// State is on, off or blind, and Since is when it last changed.
	State MonitorState `json:"state"`
	Since time.Time    `json:"since"`
	// Message says why it is off or blind.
	Message string `json:"message,omitempty"`
}

// Finding is an active fault.
type Finding struct {
	Condition string `json:"condition,omitempty"`
	Reason    string `json:"reason"`
	// Severity is Fatal, Warning or Info. A Fatal in shadow mode is listed with Shadow
	// set, and has not turned its condition.
	Severity string `json:"severity"`
	Shadow   bool   `json:"shadow,omitempty"`
	// Subject is what is at fault: a device, a unit, a pod; empty for the node.
	Subject string `json:"subject,omitempty"`
	// Since is when it was first seen.
	Since time.Time `json:"since"`
	// Evidence is the record or the measurement, cut and free of secrets.
	Evidence string `json:"evidence,omitempty"`
	// Clears is what ends it: "event", "poll", "reboot", "never" or "driver".
	Clears string `json:"clears,omitempty"`
	// Replace says that the same fault came back after two reboots: another reboot
	// will not help.
	Replace bool `json:"replace,omitempty"`
}

// GPU is the verdict on one GPU.
type GPU struct {
	UUID    string    `json:"uuid,omitempty"`
	PCI     string    `json:"pci,omitempty"`
	Verdict Verdict   `json:"verdict"`
	Reason  string    `json:"reason,omitempty"`
	Since   time.Time `json:"since"`
}

// Incident is one fault of the past or the present.
type Incident struct {
	Reason    string `json:"reason"`
	Severity  string `json:"severity"`
	Condition string `json:"condition,omitempty"`
	Subject   string `json:"subject,omitempty"`
	// From is when it was first seen, Last when it was last seen.
	From time.Time `json:"from"`
	Last time.Time `json:"last"`
	// To is when it ended; absent while it lasts. Events, which have no end, end when
	// they were last seen.
	To *time.Time `json:"to,omitempty"`
	// Ended says what ended it: "clean samples", "reboot", "driver", "all-clear by …".
	Ended string `json:"ended,omitempty"`
	// Count is how often it was seen.
	Count int `json:"count"`
}

// Decode reads the annotation's value. Fields that a newer agent added are
// ignored; another version is ErrVersion.
func Decode(value string) (Health, error) {
	var h Health
	if err := json.Unmarshal([]byte(value), &h); err != nil {
		return Health{}, fmt.Errorf("annotation %s: %w", Key, err)
	}
	if h.Version != Version {
		return Health{}, fmt.Errorf("annotation %s: %w: %q", Key, ErrVersion, h.Version)
	}
	return h, nil
}
