package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/agent/checks"
	"github.com/ekslogs/ekslogs/pkg/agent/config"
	"github.com/ekslogs/ekslogs/pkg/agent/gpu"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Exit codes of "node-agent scan --exit-code"; 1 is a scan that failed.
const (
	exitWarning = 2
	exitFatal   = 3
)

// scanTimeout bounds one run of a check.
const scanTimeout = 30 * time.Second

// scanOptions are the flags of "node-agent scan".
type scanOptions struct {
	streams            genericiooptions.IOStreams
	root, config       string
	output             string
	exitCode           bool
	mounts, interfaces []string
}

func newScanCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &scanOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "scan",
		Short: "Run every check once on this machine, without a cluster",
		Long: `Run every check once on this machine, and tell what is wrong, why, and what to do.
No cluster is needed and nothing is written. What is judged by how it changes (counters,
restarts) has no past here and is not found.

With --exit-code: 0 nothing is wrong, 2 the worst is a warning, 3 the worst is fatal. A
scan that fails ends with 1 in any case.`,
		Example: `  node-agent scan
  node-agent scan --exit-code -o json
  node-agent scan --essential-mount /data --essential-interface eth1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.root, "root", "/", "where the host's root directory lies; /host in a pod")
	f.StringVar(&o.config, "config", defaultConfigPath, "the agent's config file; it need not exist")
	f.StringVarP(&o.output, "output", "o", "table", "table or json")
	f.BoolVar(&o.exitCode, "exit-code", false, "end with 2 when there are warnings, and with 3 when something is fatal")
	f.StringSliceVar(&o.mounts, "essential-mount", nil, "a mount point that must be writable and have space, beside the node's own and the config's")
	f.StringSliceVar(&o.interfaces, "essential-interface", nil, "a network interface that must work, beside the node's own and the config's")
	return cmd
}

// scanReport is the result of a scan; its JSON is public API.
type scanReport struct {
	Version  string         `json:"version"`
	Findings []scanFinding  `json:"findings"`
	GPUs     []gpustate.Row `json:"gpus,omitempty"`
	// Blind are checks that could not measure, and why.
	Blind map[string]string `json:"blind,omitempty"`
	// Checks is how many measured.
	Checks int `json:"checks"`
}

// scanFinding is a finding, with what the catalogue says to do about it.
type scanFinding struct {
	Reason    string               `json:"reason"`
	Severity  health.Severity      `json:"severity"`
	Condition health.ConditionType `json:"condition,omitempty"`
	Subject   string               `json:"subject,omitempty"`
	Message   string               `json:"message"`
	Evidence  string               `json:"evidence,omitempty"`
	Fields    map[string]any       `json:"fields,omitempty"`
	Meaning   string               `json:"meaning,omitempty"`
	Action    string               `json:"action,omitempty"`
}

func (o *scanOptions) run(ctx context.Context) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output %q: say table or json", o.output)
	}
	h, err := host.New(o.root)
	if err != nil {
		return err
	}
	cfg, err := config.Load(o.config)
	if err != nil {
		return fmt.Errorf("%w; check it with \"node-agent config validate\"", err)
	}
	o.addTo(cfg)
	report, err := o.scan(ctx, h, cfg)
	if err != nil {
		return err
	}
	if o.output == "json" {
		err = printScanJSON(o.streams.Out, report)
	} else {
		err = printScan(o.streams.Out, os.Environ(), report)
	}
	if err != nil || !o.exitCode || len(report.Findings) == 0 {
		return err
	}
	if report.Findings[0].Severity == health.Fatal {
		return &ExitError{Code: exitFatal}
	}
	return &ExitError{Code: exitWarning}
}

// addTo adds what the flags call essential.
func (o *scanOptions) addTo(cfg *config.Config) {
	monitors := map[string]config.Monitor{}
	for name, m := range cfg.Monitors {
		monitors[name] = m
	}
	add := func(monitor, alias string, change func(*config.Monitor)) {
		if _, ok := monitors[alias]; ok {
			monitor = alias
		}
		m := monitors[monitor]
		change(&m)
		monitors[monitor] = m
	}
	add("storage", "storage-monitor", func(m *config.Monitor) { m.EssentialMounts = append(m.EssentialMounts, o.mounts...) })
	add("networking", "networking", func(m *config.Monitor) { m.EssentialInterfaces = append(m.EssentialInterfaces, o.interfaces...) })
	cfg.Monitors = monitors
}

func (o *scanOptions) scan(ctx context.Context, h *host.Host, cfg *config.Config) (scanReport, error) {
	catalog := health.NewCatalog()
	state, err := os.MkdirTemp("", "node-agent-scan-")
	if err != nil {
		return scanReport{}, err
	}
	defer os.RemoveAll(state)
	gpus := gpu.New(gpu.Options{Host: h, Catalog: catalog, StateDir: state, Log: slog.New(slog.DiscardHandler)})
	defer gpus.Stop()
	list := append(checks.List(cfg, checks.Options{Host: h, Catalog: catalog}), gpus.Checks(cfg.Monitor("nvidia").ExpectedGPUs)...)
	names := map[health.ConditionType]string{
		health.KernelReady: "kernel", health.ContainerRuntimeReady: "container-runtime",
		health.NetworkingReady: "networking", health.StorageReady: "storage", health.AcceleratedHardwareReady: "nvidia",
	}
	report := scanReport{Version: "v1", Findings: []scanFinding{}, Blind: map[string]string{}}
	var found []health.Finding
	for _, c := range list {
		if !cfg.Monitor(names[c.Condition()]).On() || !cfg.Checks[c.Name()].On() {
			continue
		}
		fs, err := sample(ctx, h, c)
		switch {
		case ctx.Err() != nil:
			return report, ctx.Err()
		case errors.Is(err, check.ErrNoData):
		case err != nil:
			report.Blind[c.Name()] = err.Error()
		default:
			report.Checks++
			found = append(found, fs...)
		}
	}
	report.Findings = explain(cfg, catalog, found)
	report.GPUs = gpus.Table(found)
	return report, nil
}

// sample runs a check as often as it takes to find something.
func sample(ctx context.Context, h *host.Host, c check.Check) (fs []health.Finding, err error) {
	times := 1
	if s, ok := c.(check.Sampler); ok {
		times = s.Samples()
	}
	for range times {
		run, cancel := context.WithTimeout(ctx, scanTimeout)
		fs, err = c.Run(run, h)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	return fs, nil
}

// explain puts the worst first, and leaves out reasons that the config turns off.
func explain(cfg *config.Config, catalog *health.Catalog, found []health.Finding) []scanFinding {
	advice := health.NewAdvice()
	out := []scanFinding{}
	for _, f := range found {
		decision := cfg.Reasons[f.Reason]
		if decision.Disabled {
			continue
		}
		if decision.Severity != "" {
			f.Severity = decision.Severity
		}
		code := f.Reason
		if r, ok := catalog.Lookup(code); ok {
			code = r.Code
		}
		out = append(out, scanFinding{
			Reason: f.Reason, Severity: f.Severity, Condition: f.Condition, Subject: f.Subject, Message: f.Message,
			Evidence: f.Evidence, Fields: f.Fields, Meaning: advice[code].Meaning, Action: advice[code].Action,
		})
	}
	slices.SortStableFunc(out, func(a, b scanFinding) int { return b.Severity.Rank() - a.Severity.Rank() })
	return out
}
