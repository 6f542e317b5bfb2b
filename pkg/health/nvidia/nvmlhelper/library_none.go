//go:build !linux || !cgo || nonvml

package nvmlhelper

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
)

// Available says whether this build can load NVML.
const Available = false

func newLibrary(string) library { return noLibrary{} }

type noLibrary struct{}

func (noLibrary) open() error {
	return &Unavailable{Cause: CauseNotBuilt, Detail: "this build of node-agent has no NVML; use one built with cgo"}
}

func (n noLibrary) read() (gpustate.State, error)      { return gpustate.State{}, n.open() }
func (n noLibrary) wait(time.Duration) (*Event, error) { return nil, n.open() }
func (noLibrary) close()                               {}
