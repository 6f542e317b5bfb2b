// Package nvmlhelper reads NVIDIA's management library (NVML) in a process of its
// own. A call into the driver can hang for good, in a state in which the process
// cannot be killed; then that process hangs, and the agent does not.
//
// The child is "node-agent nvml-helper" (Serve). It gets requests as lines of JSON
// on its standard input and writes replies and events as lines of JSON to its
// standard output. The parent's side is Helper, and Monitor makes checks of it.
package nvmlhelper

import (
	"errors"
	"fmt"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
)

// request is a line to the child.
type request struct {
	ID uint64 `json:"id"`
	// Op is opPoll or opClose.
	Op string `json:"op"`
}

const (
	// opPoll opens NVML if it is closed and takes a sample.
	opPoll = "poll"
	// opClose closes NVML, and with it the device files.
	opClose = "close"
)

// reply is a line from the child: the answer to the request with that ID, or, with ID
// 0, an event.
type reply struct {
	ID      uint64          `json:"id,omitempty"`
	State   *gpustate.State `json:"state,omitempty"`
	Failure *Unavailable    `json:"failure,omitempty"`
	Event   *Event          `json:"event,omitempty"`
}

// Event is what NVML tells by itself.
type Event struct {
	// Xid is the code of an Xid; 0 for another event.
	Xid int `json:"xid,omitempty"`
	// DoubleBit says that memory had an error that could not be corrected.
	DoubleBit bool `json:"doubleBit,omitempty"`
	// UUID and PCI name the GPU.
	UUID string `json:"uuid,omitempty"`
	PCI  string `json:"pci,omitempty"`
	// At is when the child got it.
	At time.Time `json:"at"`
}

// Unavailable says that NVML cannot be used. It is the agent's problem or the
// driver's, and no evidence against a GPU.
type Unavailable struct {
	// Cause is one of the Cause constants.
	Cause Cause `json:"cause"`
	// Detail is what NVML says.
	Detail string `json:"detail"`
}

// Cause is why NVML cannot be used.
type Cause string

// Causes.
const (
	CauseNoLibrary  Cause = "library-missing"
	CauseMismatch   Cause = "version-mismatch"
	CauseNoDriver   Cause = "driver-not-loaded"
	CausePermission Cause = "no-permission"
	CauseNotBuilt   Cause = "not-built-in"
	CauseOther      Cause = "other"
)

func (u *Unavailable) Error() string {
	return fmt.Sprintf("NVML is unavailable (%s): %s", u.Cause, u.Detail)
}

var (
	// ErrHung says that a call into the driver has not returned for longer than
	// Options.HungAfter.
	ErrHung = errors.New("a call into the NVIDIA driver does not return")
	// ErrBusy says that a call into the driver has not returned yet.
	ErrBusy = errors.New("a call into the NVIDIA driver has not returned yet")
	// ErrReleased says that NVML is kept closed on request.
	ErrReleased = errors.New("the GPUs were released: NVML is kept closed for a while")
)
