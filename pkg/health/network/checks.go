// Package network holds the checks behind the condition NetworkingReady: interfaces,
// firewall rules, counters and the agents of the pod network. Each is a thin reader and
// a pure function.
package network

import (
	"regexp"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/kubelet"
	"github.com/ekslogs/ekslogs/pkg/host/platform"
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
	// Memory keeps what must outlive a restart. Nil for a scan, which has no past.
	Memory host.Checkpoints
	// Fresh says that samples come one right after the other, as in a scan.
	Fresh bool
	// Platform is what kind of node the host is.
	Platform platform.Platform
	// EssentialInterfaces are interfaces to watch beside the node's own.
	EssentialInterfaces []string
	// Excluded match interfaces that are not the node's own.
	Excluded []*regexp.Regexp
	// AllowedChains are "table/chain" in which REJECT and DROP rules are expected.
	AllowedChains []string
}

// Checks returns all of them, in the order in which a scan shows them.
func Checks(o Options) []check.Check {
	finder := &kubelet.Finder{Host: o.Host, Processes: o.Processes}
	return []check.Check{
		newInterfaces(o),
		newForwarding(o, finder),
		newIPTables(o),
		newIPAMD(o),
		newNPA(o),
		newENA(o),
		newInfiniBand(o),
		newEFA(o),
	}
}

// DefaultExcluded match interfaces by the names that pod networks give theirs, beyond
// what their kind already says.
func DefaultExcluded() []string {
	return []string{`^(?:veth|eni[0-9a-f]{11}$|cali|lxc|cilium|tunl|ipip|gre|vxlan|flannel|cni|docker|br-|nodelocaldns|kube-|dummy|ifb|vlan\.eth|pod-id-link)`}
}

func info(name string, every time.Duration, reasons ...string) check.Info {
	return check.Info{ID: name, For: health.NetworkingReady, Codes: reasons, Every: every}
}
