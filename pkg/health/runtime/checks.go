// Package runtime holds the checks behind the condition ContainerRuntimeReady: the
// services that run pods, as systemd, their sockets and their files show them. Each is
// a thin reader and a pure function.
package runtime

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/kubelet"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

// Options are what the checks need.
type Options struct {
	// Host is where the kubelet is looked for.
	Host *host.Host
	// Catalog gives reasons their severity.
	Catalog *health.Catalog
	// Processes is shared with the other checks that look at processes.
	Processes *proc.Cache
	// EssentialUnits are systemd units that must be active; empty means the kubelet's
	// and containerd's, where they are installed and enabled.
	EssentialUnits []string
}

// Checks returns all of them, in the order in which a scan shows them.
func Checks(o Options) []check.Check {
	finder := &kubelet.Finder{Host: o.Host, Processes: o.Processes}
	return []check.Check{
		newUnits(o),
		newKubeletRecovery(o),
		newCRI(o, finder),
		newCertificates(o, finder),
		newFrozen(o),
	}
}

func info(name string, every time.Duration, reasons ...string) check.Info {
	return check.Info{ID: name, For: health.ContainerRuntimeReady, Codes: reasons, Every: every}
}
