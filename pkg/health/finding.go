// Package health is the model of what can be wrong with a node: the catalogue of
// reasons, findings, and the ledger of what is wrong now. It does no I/O and
// imports nothing else of this project.
package health

import "time"

// Severity says what a finding does.
type Severity string

// Severities, from least to worst. Their names are part of the output of
// "node-agent replay -o json".
const (
	// Info is kept in the history and raises nothing.
	Info Severity = "Info"
	// Warning raises an Event.
	Warning Severity = "Warning"
	// Fatal turns the node condition False, upon which the node is replaced.
	Fatal Severity = "Fatal"
)

// Rank orders severities: a higher rank is worse.
func (s Severity) Rank() int {
	switch s {
	case Fatal:
		return 3
	case Warning:
		return 2
	case Info:
		return 1
	}
	return 0
}

// ConditionType is a type of node condition. True means healthy.
type ConditionType string

// The node conditions that we write. Karpenter and EKS node repair know them.
const (
	KernelReady              ConditionType = "KernelReady"
	ContainerRuntimeReady    ConditionType = "ContainerRuntimeReady"
	NetworkingReady          ConditionType = "NetworkingReady"
	StorageReady             ConditionType = "StorageReady"
	AcceleratedHardwareReady ConditionType = "AcceleratedHardwareReady"
)

// Origin says who wrote the record that a finding comes from.
type Origin string

// Origins of findings.
const (
	// OriginKernel is a record of the kernel itself (facility 0).
	OriginKernel Origin = "kernel"
	// OriginUserspace is a record in the kernel's log that user space wrote. It is
	// never worth more than a Warning: any privileged pod can write one.
	OriginUserspace Origin = "userspace"
	// OriginService is a record of a service, from the journal or a file.
	OriginService Origin = "service"
	// OriginCheck is a measurement by one of our checks.
	OriginCheck Origin = "check"
)

// Finding is one sign of one fault. Findings that agree in Condition, Reason and
// Subject are the same incident.
type Finding struct {
	// Reason is a reason code of the catalogue, such as "NvidiaXID79Error".
	Reason string
	// Severity is what the finding does.
	Severity Severity
	// Condition is the node condition that it belongs to; empty for none.
	Condition ConditionType
	// Subject is what is at fault (a device, a unit, a pod), stable over time; it
	// may be empty when the node as a whole is.
	Subject string
	// Message is one sentence for a person. It holds nothing that changes each time
	// the same fault is seen (counters, pids).
	Message string
	// Fields are the values taken from the record. Numbers are int64.
	Fields map[string]any
	// Evidence is the record itself, or the measurement in words.
	Evidence string
	// At is when it happened, by the record's own clock; zero when unknown.
	At time.Time
	// Boot is the boot id that At belongs to; empty when unknown.
	Boot string
	// Origin says who wrote the record.
	Origin Origin
	// Position identifies the record in its source (for example "kmsg/BOOT/SEQ"), so
	// that a record read twice is told once; empty for measurements.
	Position string
	// Clears says that the finding ends incidents with the same Condition and
	// Subject whose rule of clearing is the driver's all-clear (Xid 154 back to 0x0).
	Clears bool
}
