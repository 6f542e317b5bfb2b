// Package checks lists the checks of a node, with what the config decides about them.
package checks

import (
	"log/slog"
	"regexp"

	"github.com/ekslogs/ekslogs/pkg/agent/config"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/kernel"
	"github.com/ekslogs/ekslogs/pkg/health/network"
	"github.com/ekslogs/ekslogs/pkg/health/runtime"
	"github.com/ekslogs/ekslogs/pkg/health/storage"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/platform"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

// Options are what the checks need beside the config.
type Options struct {
	Host    *host.Host
	Catalog *health.Catalog
	// Memory keeps what must outlive a restart. Nil for a scan, which has no past.
	Memory host.Checkpoints
	// Log is told what cannot be measured; nil for nobody.
	Log *slog.Logger
}

// List returns all checks but those of accelerators, in the order in which a scan
// shows them. The caller leaves out those of monitors that are off.
func List(cfg *config.Config, o Options) []check.Check {
	fresh := o.Memory == nil
	processes := proc.NewCache(o.Host)
	var all []check.Check
	all = append(all, kernel.Checks(kernel.Options{Catalog: o.Catalog, Processes: processes, Memory: o.Memory, Fresh: fresh})...)
	all = append(all, runtime.Checks(runtime.Options{
		Host: o.Host, Catalog: o.Catalog, Processes: processes,
		EssentialUnits: cfg.Monitor("container-runtime").EssentialUnits,
	})...)
	networking := cfg.Monitor("networking")
	all = append(all, network.Checks(network.Options{
		Host: o.Host, Catalog: o.Catalog, Processes: processes, Memory: o.Memory, Fresh: fresh,
		Platform: platform.Read(o.Host), EssentialInterfaces: networking.EssentialInterfaces,
		Excluded: excluded(networking), AllowedChains: networking.AllowedIPTablesChains,
	})...)
	all = append(all, storage.Checks(storage.Options{
		Catalog: o.Catalog, Processes: processes, Memory: o.Memory, Log: o.Log,
		EssentialMounts: cfg.Monitor("storage").EssentialMounts,
	})...)
	return all
}

// excluded compiles the names of interfaces that are not the node's own. An empty list
// in the config turns the default off, an absent one does not.
func excluded(m config.Monitor) []*regexp.Regexp {
	names := m.ExcludedInterfaceNameRegexps
	if names == nil {
		names = network.DefaultExcluded()
	}
	var out []*regexp.Regexp
	for _, name := range names {
		if re, err := regexp.Compile(name); err == nil { // the config has been checked
			out = append(out, re)
		}
	}
	return out
}
