// Package config is the agent's config file: versioned, strict, and a superset of
// the EKS node monitoring agent's.
package config

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
)

// The version and kind of the file.
const (
	APIVersion = "ekslogs.io/v1alpha1"
	Kind       = "NodeAgentConfig"
)

// Config is the content of the file. The zero value is the default.
type Config struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	// Monitors turns monitors on and off and sets what they need, by name. The names
	// of the EKS agent (kernel-monitor, runtime, storage-monitor) are known too.
	Monitors map[string]Monitor `yaml:"monitors"`
	// Mode "shadow" keeps every Fatal from turning its condition.
	Mode string `yaml:"mode"`
	// Reasons are decisions by reason code, as on a Node or as in the catalogue.
	Reasons map[string]Reason `yaml:"reasons"`
	// CleanSamples is how many clean samples in a row end a fault; default 3.
	CleanSamples int `yaml:"cleanSamples"`
	// Checks are decisions by check, by its name.
	Checks map[string]Check `yaml:"checks"`
	// EventStyle is "events" (default) or "eks".
	EventStyle string `yaml:"eventStyle"`
}

// Monitor is one monitor's part.
type Monitor struct {
	// Enabled is true unless it is said to be false.
	Enabled *bool `yaml:"enabled"`
	// EssentialUnits are systemd units that must be active (runtime).
	EssentialUnits []string `yaml:"essentialUnits"`
	// AllowedIPTablesChains are "table/chain" in which REJECT and DROP rules are
	// expected (networking).
	AllowedIPTablesChains []string `yaml:"allowedIPTablesChains"`
	// ExcludedInterfaceNameRegexps match interfaces that are not the node's own
	// (networking). An empty list turns the default off, an absent one does not.
	ExcludedInterfaceNameRegexps []string `yaml:"excludedInterfaceNameRegexps"`
	// EssentialInterfaces are interfaces to watch beside the node's own (networking).
	EssentialInterfaces []string `yaml:"essentialInterfaces"`
	// EssentialMounts are mount points that must be writable and have space, beside
	// those of the node itself (storage).
	EssentialMounts []string `yaml:"essentialMounts"`
	// ExpectedGPUs is how many GPUs the node must have; 0 goes by the instance type,
	// and -1 expects nothing (nvidia).
	ExpectedGPUs int `yaml:"expectedGPUs"`
}

// Reason is a decision about one reason.
type Reason struct {
	Disabled bool `yaml:"disabled"`
	// Severity replaces the catalogue's: Fatal, Warning or Info.
	Severity health.Severity `yaml:"severity"`
	// Mode "shadow" tells what a Fatal would have done, and does not do it.
	Mode string `yaml:"mode"`
	// Clears replaces what ends it: event, poll, reboot or never.
	Clears ledger.Kind `yaml:"clears"`
}

// Check is a decision about one check.
type Check struct {
	Enabled *bool `yaml:"enabled"`
	// Interval is how often it runs, such as "5m"; at least one second.
	Interval Duration `yaml:"interval"`
}

// Duration is a time.Duration written as "5m".
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil {
		return fmt.Errorf("line %d: %q is no duration such as 30s or 5m", n.Line, n.Value)
	}
	*d = Duration(v)
	return nil
}

const shadow = "shadow"

// names are the monitors by the names that the file may use.
func names() map[string]health.ConditionType {
	return map[string]health.ConditionType{
		"kernel":            health.KernelReady,
		"kernel-monitor":    health.KernelReady,
		"runtime":           health.ContainerRuntimeReady,
		"container-runtime": health.ContainerRuntimeReady,
		"networking":        health.NetworkingReady,
		"storage":           health.StorageReady,
		"storage-monitor":   health.StorageReady,
		"nvidia":            health.AcceleratedHardwareReady,
		"neuron":            health.AcceleratedHardwareReady,
	}
}

// canonical are the names that the agent itself uses.
func canonical(name string) string {
	switch name {
	case "kernel-monitor":
		return "kernel"
	case "runtime":
		return "container-runtime"
	case "storage-monitor":
		return "storage"
	}
	return name
}

// Monitor returns the part of the monitor with the agent's own name: "kernel",
// "container-runtime", "networking", "storage", "nvidia" or "neuron".
func (c *Config) Monitor(name string) Monitor {
	for n, m := range c.Monitors {
		if canonical(n) == name {
			return m
		}
	}
	return Monitor{}
}

// On reports whether the monitor is not turned off.
func (m Monitor) On() bool { return m.Enabled == nil || *m.Enabled }

// On reports whether the check is not turned off.
func (c Check) On() bool { return c.Enabled == nil || *c.Enabled }

// Policy is what the config decides about reasons.
func (c *Config) Policy() ledger.Policy {
	p := ledger.Policy{Shadow: c.Mode == shadow, CleanSamples: c.CleanSamples, Reasons: map[string]ledger.ReasonPolicy{}}
	for code, r := range c.Reasons {
		p.Reasons[code] = ledger.ReasonPolicy{Disabled: r.Disabled, Severity: r.Severity, Shadow: r.Mode == shadow, Clears: r.Clears}
	}
	return p
}
