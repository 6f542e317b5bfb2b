// Package check is what a check of the node is: something that measures at an
// interval and says what is wrong now. The checks themselves live with the
// condition that they serve (pkg/health/kernel, network, ...), one file a check:
// a thin reader, and a pure function from the previous and the present state to
// findings, which is what tests call.
package check

import (
	"context"
	"errors"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// ErrNoData says that the host does not have what the check looks at (no zram
// device, no such CNI). It is neither a clean sample nor a failure: whoever runs the
// check reports nothing, and does not count the check as blind.
var ErrNoData = errors.New("nothing to check on this host")

// A Check measures one thing. One goroutine at a time calls Run, so that a check may
// keep its previous sample in itself without a lock.
type Check interface {
	// Name is short, stable and unique, in kebab case: "zombies", "pid-usage". Config
	// and metrics know the check by it.
	Name() string
	// Condition is the condition that the findings belong to.
	Condition() health.ConditionType
	// Reasons are the reason codes of which a Run is a sample, as the catalogue writes
	// them ("{Unit}RepeatedRestart"). A reason that is listed here, and is not among
	// the findings of a Run that returned no error, had a clean sample: that is what
	// clears "poll" faults, even those that a log rule found (ForkFailedOutOfPIDs).
	Reasons() []string
	// Interval is how often to run. The scheduler adds jitter.
	Interval() time.Duration
	// Run takes a sample and returns what is wrong now; nil is a clean sample. The
	// first sample of what is judged by change is a baseline and finds nothing.
	// An error that is not ErrNoData means that the check is blind. Run honours ctx,
	// and must not block on what can hang (mounts, devices, memory of other
	// processes): such work belongs into a supervised child.
	Run(ctx context.Context, h *host.Host) ([]health.Finding, error)
}

// Sampler is a Check that finds something only after several samples in a row, and
// soon enough that "node-agent scan", which has no history, may take them one right
// after the other.
type Sampler interface {
	Check
	// Samples is how many Runs it takes, at least 2.
	Samples() int
}

// Finding returns a finding of a check, with the condition and the severity that
// the catalogue gives its reason. An unknown reason gives a Warning without a
// condition; a test of each package pins its reasons to the catalogue.
func Finding(c *health.Catalog, reason, subject, message string) health.Finding {
	f := health.Finding{Reason: reason, Severity: health.Warning, Subject: subject, Message: message, Origin: health.OriginCheck}
	if r, ok := c.Lookup(reason); ok {
		f.Severity, f.Condition = r.Severity, r.Condition
	}
	return f
}
