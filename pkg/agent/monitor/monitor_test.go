package monitor

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/pkg/agent/config"
	"github.com/ekslogs/ekslogs/pkg/agent/metrics"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/detect"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/kube"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type testMonitor struct {
	*Monitor
	root string
}

// newTestMonitor is a monitor over a fixture tree, with its ledger open and no API
// server to speak to. change, if any, edits its options first.
func newTestMonitor(t *testing.T, state string, change func(*Options)) *testMonitor {
	t.Helper()
	root := t.TempDir()
	write(t, root+"/proc/sys/kernel/random/boot_id", "11111111-2222-3333-4444-555555555555\n")
	write(t, root+"/proc/stat", "btime 1700000000\n")
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{Host: "http://127.0.0.1:1"}
	core, err := kube.NewClient(cfg, corev1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	events, err := kube.NewClient(cfg, eventsv1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Host: h, Node: "n", Version: "v1", Catalog: health.NewCatalog(), Core: core, Events: events, StateDir: state,
		Detector: func(*config.Config) (detect.Detector, error) { return lines{}, nil },
		Instance: "pod", Metrics: metrics.New(), Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(&o)
	}
	m := &testMonitor{New(o), root}
	m.reload()
	t.Cleanup(m.openState())
	m.turnMonitors(m.cfg)
	return m
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// findings are the active ones as "reason/subject".
func (m *testMonitor) findings() string {
	var out []string
	for _, f := range m.ledger.View().Findings {
		out = append(out, f.Reason+"/"+f.Subject)
	}
	return strings.Join(out, " ")
}

// lines is a detector that takes each record's message for a reason.
type lines struct{}

func (lines) Detect(r host.Record) []health.Finding {
	row, ok := health.NewCatalog().Lookup(r.Message)
	if !ok {
		return nil
	}
	return []health.Finding{{Reason: r.Message, Severity: row.Severity, Condition: row.Condition, At: r.At, Position: r.Position}}
}
func (lines) Due() time.Time                   { return time.Time{} }
func (lines) Flush(time.Time) []health.Finding { return nil }

func TestFindingsOfMonitorsThatAreOffAreNotTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "monitors:\n  storage-monitor: {enabled: false}\n")
	m := newTestMonitor(t, t.TempDir(), func(o *Options) { o.ConfigPath = path })
	m.detector = lines{}
	for _, reason := range []string{"KernelOops", "FilesystemShutdown", "NvidiaXID79Error"} {
		if err := m.handle(host.Record{Message: reason, Position: "kmsg/b/" + reason}); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.findings(); got != "KernelOops/" {
		t.Errorf("findings %q", got)
	}
	d := m.Desired()
	if !slices.Contains(d.Off, health.StorageReady) || !slices.Contains(d.Off, health.AcceleratedHardwareReady) || !slices.Contains(d.On, health.KernelReady) {
		t.Errorf("on %v, off %v", d.On, d.Off)
	}
	for _, w := range d.Health.Monitors {
		if w.Name == "nvidia" && w.Message != "no such hardware on this node" {
			t.Errorf("nvidia: %+v", w)
		}
	}
}

func TestHardwareIsKnownByItself(t *testing.T) {
	m := newTestMonitor(t, t.TempDir(), nil)
	if hasNvidia(m.opts.Host) || hasNeuron(m.opts.Host) {
		t.Error("hardware in an empty machine")
	}
	dev := m.root + "/sys/bus/pci/devices/0000:b3:00.0/"
	write(t, dev+"vendor", "0x10de\n")
	write(t, dev+"class", "0x040300\n") // its audio function
	if hasNvidia(m.opts.Host) {
		t.Error("an audio device is taken for a GPU")
	}
	write(t, dev+"class", "0x030200\n")
	if !hasNvidia(m.opts.Host) {
		t.Error("a GPU without a driver is not seen")
	}
	write(t, m.root+"/sys/class/neuron_device/neuron0/x", "")
	if !hasNeuron(m.opts.Host) {
		t.Error("a Neuron device is not seen")
	}
}

func TestABadConfigChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "monitors:\n  kernel: {enabled: false}\n")
	m := newTestMonitor(t, t.TempDir(), func(o *Options) { o.ConfigPath = path })
	write(t, path, "monitors:\n  kernel: {enabled: perhaps}\n")
	if m.reload() {
		t.Error("a bad config was taken")
	}
	if m.cfg.Monitor("kernel").On() {
		t.Error("the last good config is gone")
	}
}

func TestAnOrderOnTheNodeEndsAFault(t *testing.T) {
	state := t.TempDir()
	m := newTestMonitor(t, state, nil)
	m.detector = lines{}
	m.handle(host.Record{Message: "FilesystemShutdown", Position: "kmsg/b/1"})
	if err := GiveOrder(state, Order{Reason: "FilesystemShutdown", By: "ann", At: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	write(t, state+"/orders/bad.json", "{")
	m.obeyOrders()
	if got := m.findings(); got != "" {
		t.Errorf("findings %q", got)
	}
	if in := m.ledger.View().Incidents; len(in) != 1 || in[0].Ended != "all-clear by ann at 2026-03-01T10:00:00Z" {
		t.Errorf("history %+v", in)
	}
	if left, _ := filepath.Glob(state + "/orders/*"); len(left) != 0 {
		t.Errorf("orders left: %q", left)
	}
}

func TestASecondAgentWaitsForTheFirst(t *testing.T) {
	dir := t.TempDir()
	log := slog.New(slog.DiscardHandler)
	unlock, err := lock(t.Context(), dir, log, func() { t.Error("the first one waits") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, dir, log, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("the second one did not wait: %v", err)
	}
	unlock()
	if _, err := lock(t.Context(), dir, log, func() { t.Error("the lock was not given back") }); err != nil {
		t.Error(err)
	}
	if unlock, err := lock(t.Context(), dir+"/none", log, func() {}); err != nil || unlock == nil {
		t.Errorf("without a state directory there is no agent: %v", err)
	}
}

// blindSource is a source whose state a test sets.
type blindSource struct{ *host.SourceState }

func (s blindSource) Name() string                            { return s.Status().Name }
func (s blindSource) Run(context.Context, host.Handler) error { return nil }
func (s blindSource) State() *host.SourceState                { return s.SourceState }

func TestBlindnessIsToldAfterAGraceAndEndsByItself(t *testing.T) {
	m := newTestMonitor(t, t.TempDir(), nil)
	state := host.NewSourceState("kmsg")
	m.feeds = []feed{{source: blindSource{state}, required: []health.ConditionType{health.KernelReady}}}
	m.ledger.Evaluated(health.KernelReady)
	state.SetBlind("permission denied")
	now := time.Now()
	if again := m.lookAtSources(now); again <= 0 || m.findings() != "" {
		t.Errorf("told at once: %q, again in %s", m.findings(), again)
	}
	m.lookAtSources(now.Add(blindGrace + time.Second))
	if got := m.findings(); got != "MonitorBlind/kmsg" {
		t.Errorf("findings %q", got)
	}
	c := m.ledger.View().Conditions[0]
	if !c.Healthy || !slices.Equal(c.Blind, []string{"kmsg"}) || !strings.Contains(c.Message, "cannot read kmsg") {
		t.Errorf("%+v", c)
	}
	for _, w := range m.Desired().Health.Monitors {
		if w.Name == "kernel" && w.State != "blind" {
			t.Errorf("%+v", w)
		}
	}
	state.SetUp()
	m.lookAtSources(now.Add(time.Minute))
	if c := m.ledger.View().Conditions[0]; m.findings() != "" || c.Blind != nil {
		t.Errorf("still blind: %q, %+v", m.findings(), c)
	}
	state.AddLost(7)
	m.lookAtSources(now.Add(2 * time.Minute))
	if got := m.findings(); got != "MonitorBlind/kmsg records" {
		t.Errorf("findings %q", got)
	}
	m.lookAtSources(now.Add(3*time.Minute + lossQuiet))
	if got := m.findings(); got != "" {
		t.Errorf("the loss is told for ever: %q", got)
	}
}

func TestNothingIsHealthyBeforeItsLogsAreRead(t *testing.T) {
	m := newTestMonitor(t, t.TempDir(), nil)
	state := host.NewSourceState("kmsg")
	m.feeds = []feed{{source: blindSource{state}, required: []health.ConditionType{health.KernelReady}}}
	later := time.Now().Add(time.Hour)
	written := func() bool {
		m.evaluated(later)
		return slices.ContainsFunc(m.ledger.View().Conditions, func(c ledger.Condition) bool { return c.Type == health.KernelReady })
	}
	m.firstRound()
	if written() {
		t.Error("written before the Node was read")
	}
	m.adopted.Store(true)
	if written() {
		t.Error("written before the kernel's log was read")
	}
	state.SetUp()
	if !written() {
		t.Error("not written")
	}
}

func TestRunReadsLogsAndStopsCleanly(t *testing.T) {
	m := newTestMonitor(t, t.TempDir(), nil)
	write(t, m.root+"/var/log/messages", "")
	fresh := New(m.opts)
	fresh.opts.StateDir = t.TempDir()
	ran := make(chan struct{})
	fresh.opts.Checks = func(*config.Config, host.Checkpoints) []check.Check {
		return []check.Check{fakeCheck{name: "once", interval: time.Second, run: func(context.Context) ([]health.Finding, error) {
			select {
			case <-ran:
			default:
				close(ran)
			}
			return nil, nil
		}}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- fresh.Run(ctx) }()
	select {
	case <-ran:
	case <-time.After(20 * time.Second):
		t.Error("the check did not run")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if fresh.Ready() == nil {
		t.Error("ready without an API server")
	}
}
