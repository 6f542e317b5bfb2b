package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/internal/version"
	"github.com/ekslogs/ekslogs/pkg/agent"
	"github.com/ekslogs/ekslogs/pkg/agent/capture"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/kube"
)

// runOptions are the flags of "node-agent run".
type runOptions struct {
	nodeName        string
	kubeconfig      string
	root            string
	stateDir        string
	bundleRetention time.Duration
	captureTimeout  time.Duration
	lowPriority     bool
	verbose         bool
	monitor         monitorOptions

	streams genericiooptions.IOStreams
}

func newRunCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &runOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Watch this node and answer requests for its logs",
		Long: `Run the agent of this node, until SIGTERM or SIGINT.

It finds the faults of the node in its logs and by checks, and tells them as node
conditions, Events and metrics.

It answers the NodeDiagnostic object that is named after the node: it collects a
log bundle in a process of its own, leaves it where the kubelet serves it, or sends
it to the object's URL, and reports in the object's status.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.nodeName, "node-name", os.Getenv("NODE_NAME"), "the node's name in the cluster (default $NODE_NAME, else the host's name)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server (default: the pod's service account, else the kubelet's kubeconfig)")
	f.StringVar(&o.root, "root", "/", "where the host's root directory lies; /host in a pod")
	f.StringVar(&o.stateDir, "state-dir", "/var/lib/node-agent", "folder on the host for what the agent remembers")
	f.DurationVar(&o.bundleRetention, "bundle-retention", 10*time.Minute, "how long a bundle stays on the node")
	f.DurationVar(&o.captureTimeout, "capture-timeout", capture.DefaultTimeout, "how long a capture may take, its upload included")
	o.monitor.addFlags(f)
	f.BoolVar(&o.lowPriority, "low-priority", true, "give way to the node's workloads: nice and SCHED_BATCH")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "say more")
	return cmd
}

// complete fills in what was not given and checks the rest.
func (o *runOptions) complete() error {
	if o.nodeName == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("the host's name: %w; give --node-name", err)
		}
		// As the kubelet does for its default.
		o.nodeName = strings.ToLower(strings.TrimSpace(name))
	}
	if errs := validation.IsDNS1123Subdomain(o.nodeName); len(errs) > 0 {
		return fmt.Errorf("--node-name %q is no node's name: %s", o.nodeName, strings.Join(errs, "; "))
	}
	switch {
	case !path.IsAbs(o.stateDir) || path.Clean(o.stateDir) == "/":
		return fmt.Errorf("--state-dir %q: give an absolute path on the host", o.stateDir)
	case o.bundleRetention <= 0:
		return errors.New("--bundle-retention: give a positive duration such as 10m")
	case o.captureTimeout <= 0:
		return errors.New("--capture-timeout: give a positive duration such as 15m")
	}
	return nil
}

func (o *runOptions) run(ctx context.Context) error {
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(o.streams.ErrOut, &slog.HandlerOptions{Level: level}))
	// client-go speaks by klog.
	klog.SetSlogLogger(log)
	if os.Getenv("GOMAXPROCS") == "" {
		// One core is plenty, and the others are somebody's training job.
		runtime.GOMAXPROCS(1)
	}
	if o.lowPriority {
		if err := lowerPriority(); err != nil {
			log.Warn("the agent runs at an ordinary priority", "err", err)
		}
	}
	components, err := o.components(log)
	if err != nil {
		return err
	}
	log.Info("node-agent starts", "version", version.Version(), "node", o.nodeName, "root", o.root)
	agent.Run(ctx, log, components...)
	log.Info("node-agent stopped")
	return nil
}

// components builds the parts of the agent.
func (o *runOptions) components(log *slog.Logger) ([]agent.Component, error) {
	h, err := host.New(o.root)
	if err != nil {
		return nil, err
	}
	cfg, err := kube.LoadConfig(o.kubeconfig, "node-agent/"+version.Version())
	if err != nil {
		return nil, err
	}
	core, err := kube.NewClient(cfg, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	diagnostics, err := kube.NewClient(cfg, v1alpha1.GroupVersion())
	if err != nil {
		return nil, err
	}
	detection, components, err := o.monitor.components(h, o.nodeName, o.stateDir, cfg, log)
	if err != nil {
		return nil, err
	}
	return append(components, capture.New(capture.Config{
		Host: h, Node: o.nodeName, Version: version.Version(),
		Diagnostics: diagnostics, Core: core,
		StateDir: o.stateDir, Retention: o.bundleRetention, Timeout: o.captureTimeout,
		Findings: detection.FindingsJSON, Standby: detection.Standby,
		Log: log.With("component", "capture"),
	})), nil
}
