// Package monitor is the agent's detection: records of logs and samples of checks
// become findings, the ledger decides what they mean, and the publisher tells.
package monitor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/pkg/agent/config"
	"github.com/ekslogs/ekslogs/pkg/agent/metrics"
	"github.com/ekslogs/ekslogs/pkg/agent/publish"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/detect"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Options make a Monitor. All is required unless it says otherwise.
type Options struct {
	Host    *host.Host
	Node    string
	Version string
	Catalog *health.Catalog
	// Core is a client of the core group, Events one of the group of EventStyle.
	Core, Events rest.Interface
	// StateDir is the folder of this process (not of the host) for what is remembered.
	StateDir string
	// ConfigPath is the config file; empty for none.
	ConfigPath string
	// Detector makes the detector of the logs, and Checks the checks, for a config.
	// Checks is optional; it gets what outlives a restart.
	Detector func(*config.Config) (detect.Detector, error)
	Checks   func(*config.Config, host.Checkpoints) []check.Check
	// Sources are logs to read beside those of every node. Optional.
	Sources []host.LogSource
	// GPUs are the verdicts on the GPUs, given the active findings. Optional.
	GPUs func([]annotation.Finding) []annotation.GPU
	// Redact takes secrets out of evidence. Optional.
	Redact     func(string) string
	EventStyle publish.Style
	// Takeover writes conditions that another agent writes too.
	Takeover bool
	// TrustUserspace lets records of user space in the kernel's log be Fatal.
	TrustUserspace bool
	// KmsgFromSeq leaves out older records of the kernel's log; 0 for none.
	KmsgFromSeq uint64
	// Instance names this process in Events (the pod's name).
	Instance string
	Metrics  *metrics.Metrics
	Log      *slog.Logger
}

// Monitor is a component of the agent. Make it with New.
type Monitor struct {
	opts      Options
	log       *slog.Logger
	publisher *publish.Publisher
	events    *publish.EventWriter
	wake      chan struct{}
	adopted   atomic.Bool
	standby   atomic.Bool

	// ledger is set before anything that uses it runs.
	ledger      *ledger.Ledger
	checkpoints host.Checkpoints
	// positions are the checkpoints of the logs.
	positions *holdback

	mu        sync.Mutex
	cfg       *config.Config
	on        map[health.ConditionType]bool
	watchers  []watcher
	blindTold map[string]bool
	firstDone bool

	pipe     sync.Mutex
	detector detect.Detector
	due      *time.Timer

	// The rest belongs to the goroutine of Run, or to that of the scheduler.
	feeds    []feed
	losses   map[string]lossState
	failures map[string]int
}

// New returns a monitor that has not started.
func New(o Options) *Monitor {
	m := &Monitor{
		opts: o, log: o.Log, wake: make(chan struct{}, 1), cfg: &config.Config{},
		blindTold: map[string]bool{}, losses: map[string]lossState{}, failures: map[string]int{},
	}
	m.publisher = publish.New(publish.Options{
		Node: o.Node, Core: o.Core, Source: m, Takeover: o.Takeover, Log: o.Log,
		Instance: fmt.Sprintf("%s/%x", o.Instance, time.Now().UnixNano()),
	})
	return m
}

// Name implements agent.Component.
func (m *Monitor) Name() string { return "monitor" }

// Ready says why the agent cannot work yet; nil when it can.
func (m *Monitor) Ready() error {
	if !m.publisher.Registered() {
		return errors.New("the Node is not known to the API server, or cannot be read")
	}
	return nil
}

// Run implements agent.Component.
func (m *Monitor) Run(ctx context.Context) error {
	if err := os.MkdirAll(m.opts.StateDir, 0o700); err != nil {
		m.log.Warn("the state directory cannot be made: a restart will know only what the Node says", "err", err)
	}
	unlock, err := lock(ctx, m.opts.StateDir, m.log, func() { m.standby.Store(true); m.opts.Metrics.Standby(true) })
	if err != nil {
		return nil // told to stop while it waited
	}
	defer unlock()
	m.standby.Store(false)
	m.opts.Metrics.Standby(false)
	m.reload()
	closeState := m.openState()
	defer closeState()

	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Both end with ctx only, and say no more than that.
	wg.Go(func() { _ = m.publisher.Run(ctx) })
	wg.Go(func() { _ = m.events.Run(ctx) })
	return m.loop(ctx)
}

// openState opens the ledger and the checkpoints, and makes the writer of Events.
func (m *Monitor) openState() func() {
	boot, err := m.opts.Host.BootID()
	if err != nil {
		m.log.Warn("reboots cannot be told from restarts", "err", err)
	}
	bootTime, err := m.opts.Host.BootTime()
	if err != nil {
		m.log.Warn("the time of the boot is not known", "err", err)
	}
	policy := m.cfg.Policy()
	policy.TrustUserspace = m.opts.TrustUserspace
	m.ledger, err = ledger.Open(ledger.Options{
		Catalog: m.opts.Catalog, Store: fileStore{m.opts.StateDir + "/ledger.json"}, Boot: boot, BootTime: bootTime,
		Policy: policy, Redact: m.opts.Redact,
	})
	if err != nil {
		m.log.Error("the ledger starts empty", "err", err)
		m.opts.Metrics.StateError()
	}
	m.ledger.Cover([]string{monitorBlind, publish.AnotherAgentActive})
	m.events = publish.NewEventWriter(publish.EventOptions{
		Node: m.opts.Node, UID: m.publisher.UID, Boot: boot, Client: m.opts.Events, Style: m.opts.EventStyle,
		Instance: m.opts.Instance, Outbox: m.ledger, Quiet: m.standby.Load, Log: m.log,
	})
	store, closeStore := m.openCheckpoints()
	m.checkpoints, m.positions = store, newHoldback(store)
	return func() {
		m.flush()
		closeStore()
	}
}

// observe takes a finding of a log, or of the agent itself.
func (m *Monitor) observe(f health.Finding) {
	if f.Condition != "" && !m.isOn(f.Condition) {
		return
	}
	m.namePod(f)
	m.opts.Metrics.Found(f.Reason, m.ledger.Observe(f))
}

// podUID is a pod's UID; nothing else is looked for on the disk.
var podUID = regexp.MustCompile(`^[0-9a-f-]{32,36}$`)

// namePod names the pod that a finding knows by its UID only: the kernel tells cgroups.
func (m *Monitor) namePod(f health.Finding) {
	uid, _ := f.Fields["pod_uid"].(string)
	if f.Fields["pod"] != nil || f.Severity == health.Info || !podUID.MatchString(uid) {
		return
	}
	if pod := nvidia.PodByUID(m.opts.Host, uid); pod.Name != "" {
		f.Fields["pod"] = pod.String()
	}
}

func (m *Monitor) isOn(t health.ConditionType) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on[t]
}

// poke makes the loop look at everything again.
func (m *Monitor) poke() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Monitor) flush() {
	if err := m.ledger.Flush(); err != nil {
		m.opts.Metrics.StateError()
		m.log.Debug("the ledger cannot be written", "err", err)
	}
}

// FindingsJSON is what a bundle's findings.json holds: what the Node shows, uncut.
func (m *Monitor) FindingsJSON() []byte {
	if m.ledger == nil {
		return nil
	}
	v := m.ledger.View()
	b, err := json.MarshalIndent(struct {
		Version    string                `json:"version"`
		Conditions []ledger.Condition    `json:"conditions"`
		Findings   []annotation.Finding  `json:"findings"`
		Incidents  []annotation.Incident `json:"incidents"`
	}{"v1", v.Conditions, append([]annotation.Finding{}, v.Findings...), v.Incidents}, "", "  ")
	if err != nil {
		return nil
	}
	return b
}
