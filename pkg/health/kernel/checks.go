// Package kernel holds the checks behind the condition KernelReady: what the kernel's
// log does not say, and must be measured. Each is a thin reader and a pure function.
package kernel

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

// Options are what the checks need. Zero limits mean the defaults.
type Options struct {
	// Catalog gives reasons their severity.
	Catalog *health.Catalog
	// Processes is shared with the other checks that look at processes.
	Processes *proc.Cache
	// Memory keeps what must outlive a restart: the boot id, and the panics that were
	// told. Nil for a scan, which has no past.
	Memory host.Checkpoints
	// Fresh says that no sample may be shared with an earlier run, as in a scan, which
	// takes several in a row.
	Fresh bool
	// UsageLimit is the share of PIDs and of open files from which they are too many;
	// 0.70 by default.
	UsageLimit float64
	// ZramLimit is the share of a zram device's size from which it holds too much; 0.10
	// by default.
	ZramLimit float64
}

// Checks returns all of them, in the order in which a scan shows them.
func Checks(o Options) []check.Check {
	if o.UsageLimit <= 0 {
		o.UsageLimit = 0.70
	}
	if o.ZramLimit <= 0 {
		o.ZramLimit = 0.10
	}
	checks := []check.Check{
		newPIDUsage(o),
		newForkRecovery(o),
		newOpenFiles(o),
		newClock(o),
		newZombies(o),
		newEnvironment(o),
		newZram(o),
		newStuck(o),
	}
	if o.Memory != nil {
		checks = append(checks, newReboot(o), newPstore(o))
	}
	return checks
}

func info(name string, every time.Duration, reasons ...string) check.Info {
	return check.Info{ID: name, For: health.KernelReady, Codes: reasons, Every: every}
}
