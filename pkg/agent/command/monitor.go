package command

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/internal/version"
	"github.com/ekslogs/ekslogs/pkg/agent"
	"github.com/ekslogs/ekslogs/pkg/agent/checks"
	"github.com/ekslogs/ekslogs/pkg/agent/config"
	"github.com/ekslogs/ekslogs/pkg/agent/gpu"
	"github.com/ekslogs/ekslogs/pkg/agent/metrics"
	"github.com/ekslogs/ekslogs/pkg/agent/monitor"
	"github.com/ekslogs/ekslogs/pkg/agent/publish"
	"github.com/ekslogs/ekslogs/pkg/collect/redact"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/detect"
	"github.com/ekslogs/ekslogs/pkg/health/incident"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/rule"
	"github.com/ekslogs/ekslogs/pkg/health/storage"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/kube"
)

// monitorOptions are the flags of "node-agent run" that detection has.
type monitorOptions struct {
	configPath     string
	rulesDir       string
	metricsAddress string
	eventStyle     string
	takeover       bool
	trustUserspace bool
	kmsgFromSeq    uint64
}

const (
	defaultConfigPath = "/etc/node-agent/config.yaml"
	defaultRulesDir   = "/etc/node-agent/rules"
)

func (o *monitorOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.configPath, "config", defaultConfigPath, "the config file; it need not exist, and is read again when it changes and upon SIGHUP")
	f.StringVar(&o.rulesDir, "rules-dir", defaultRulesDir, "folder of log rules that come on top of the built-in ones; it need not exist")
	f.StringVar(&o.metricsAddress, "metrics-address", metrics.DefaultAddress, "where to serve /metrics, /healthz and /readyz; :20257 for all addresses of the node, \"\" for nowhere")
	f.StringVar(&o.eventStyle, "event-style", "", "shape of Events: events, or eks for that of the EKS node monitoring agent (default: the config's, else events)")
	f.BoolVar(&o.takeover, "takeover", false, "write the node's conditions even when another agent writes them too")
	f.BoolVar(&o.trustUserspace, "trust-userspace-kmsg", false, "for drills and tests: let records that user space wrote to the kernel's log be Fatal")
	f.Uint64Var(&o.kmsgFromSeq, "kmsg-from-seq", 0, "for tests: leave out records of the kernel's log before this sequence number")
}

// components builds detection and the listener of metrics.
func (o *monitorOptions) components(h *host.Host, node, stateDir string, cfg *rest.Config, log *slog.Logger) (*monitor.Monitor, []agent.Component, error) {
	style, err := o.style()
	if err != nil {
		return nil, nil, err
	}
	core, err := kube.NewClient(cfg, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, nil, err
	}
	events, err := kube.NewClient(cfg, style.GroupVersion())
	if err != nil {
		return nil, nil, err
	}
	catalog := health.NewCatalog()
	secrets := redact.New()
	instance := os.Getenv("POD_NAME")
	if instance == "" {
		instance = node
	}
	counters := metrics.New()
	gpus := gpu.New(gpu.Options{Host: h, Catalog: catalog, StateDir: h.Path(stateDir), Log: log.With("component", "gpus")})
	m := monitor.New(monitor.Options{
		Host: h, Node: node, Version: version.Version(), Catalog: catalog, Core: core, Events: events,
		StateDir: h.Path(stateDir), ConfigPath: o.configPath,
		Detector: func(*config.Config) (detect.Detector, error) { return o.detector(h, catalog, gpus.Detector()) },
		Checks: func(cfg *config.Config, memory host.Checkpoints) []check.Check {
			return append(checks.List(cfg, checks.Options{Host: h, Catalog: catalog, Memory: memory, Log: log.With("component", "checks")}), gpus.Checks(cfg.Monitor("nvidia").ExpectedGPUs)...)
		},
		Sources:    []host.LogSource{gpus.Source()},
		GPUs:       gpus.Verdicts,
		Redact:     func(s string) string { s, _ = secrets.String(s); return s },
		EventStyle: style, Takeover: o.takeover, TrustUserspace: o.trustUserspace, KmsgFromSeq: o.kmsgFromSeq,
		Instance: instance, Metrics: counters, Log: log.With("component", "monitor"),
	})
	components := []agent.Component{m, gpus}
	if o.metricsAddress != "" {
		components = append(components, &metrics.Server{Address: o.metricsAddress, Metrics: counters, Ready: m.Ready})
	}
	return m, components, nil
}

// style is the flag's word, else the config's.
func (o *monitorOptions) style() (publish.Style, error) {
	if o.eventStyle != "" {
		return publish.ParseStyle(o.eventStyle)
	}
	cfg, err := config.Load(o.configPath)
	if err != nil {
		return "", fmt.Errorf("%w; check it with \"node-agent config validate\"", err)
	}
	return publish.ParseStyle(cfg.EventStyle)
}

// detector compiles the built-in rules and those of the rules folder.
func (o *monitorOptions) detector(h *host.Host, catalog *health.Catalog, gpus nvidia.Options) (detect.Detector, error) {
	rules, err := rule.Embedded()
	if err != nil {
		return nil, err
	}
	if o.rulesDir != "" {
		more, err := rule.LoadDir(dirFS(o.rulesDir), ".")
		if err != nil {
			return nil, err
		}
		rules = rule.Override(rules, more)
	}
	return detect.New(detect.Options{Rules: rules, Catalog: catalog, TrustUserspace: o.trustUserspace, Nvidia: gpus,
		Incident: incident.Options{Critical: storage.Needed(h)}})
}

func dirFS(dir string) fs.FS { return os.DirFS(dir) }
