package command

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/detect"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/rule"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/logtext"
)

// replayOptions are the flags of "node-agent replay".
type replayOptions struct {
	streams       genericiooptions.IOStreams
	source        string
	unit          string
	path          string
	driverVersion string
	rulesDir      string
	output        string
	all           bool
	trust         bool
}

func newReplayCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &replayOptions{streams: streams, output: "text"}
	cmd := &cobra.Command{
		Use:   "replay FILE|-",
		Short: "Find the faults in a saved log",
		Long: `Run today's rules over a saved log and print what they find, by the same code that
runs on nodes.

FILE is text of dmesg (plain, -T, -x, --time-format iso), of /dev/kmsg, of
journalctl (short forms or json), of syslog, or of pstore; or a log bundle
(.tar.gz). "-" is standard input. Findings appear while the text still comes.

Lines that name no source are taken as the kernel's, unless --source says
otherwise.`,
		Example: `  dmesg | node-agent replay -
  journalctl -b -o json | node-agent replay -o json -
  node-agent replay --source journal --unit kubelet kubelet.log
  node-agent replay --source file --path /var/log/aws-routed-eni/ipamd.log ipamd.log
  node-agent replay node-1-logs.tar.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.source, "source", "", "what lines without a prefix are of: kmsg, journal or file (default kmsg)")
	f.StringVar(&o.unit, "unit", "", "the unit whose words such lines are, with --source journal")
	f.StringVar(&o.path, "path", "", "where the file was on the node, with --source file")
	f.StringVar(&o.driverVersion, "driver-version", "", "version of the NVIDIA driver that wrote the log, for example 575.57.08")
	f.StringVar(&o.rulesDir, "rules", "", "directory with rules of your own, beside or in place of the product's")
	f.StringVarP(&o.output, "output", "o", o.output, "output format: text or json (one object a line)")
	f.BoolVar(&o.all, "all", false, "print every finding, not each incident once")
	f.BoolVar(&o.trust, "trust-userspace", false, "take what user space wrote to the kernel's log for the kernel's own")
	return cmd
}

func (o *replayOptions) validate() error {
	if !slices.Contains([]string{"", "kmsg", "journal", "file"}, o.source) {
		return fmt.Errorf("--source %q: use kmsg, journal or file", o.source)
	}
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output %q: use text or json", o.output)
	}
	if o.unit != "" && o.source != "journal" {
		return fmt.Errorf("--unit goes with --source journal")
	}
	if o.path != "" && o.source != "file" {
		return fmt.Errorf("--path goes with --source file")
	}
	return nil
}

// pipeline makes the detectors that the flags ask for.
func (o *replayOptions) pipeline() (*detect.Pipeline, error) {
	rules, err := rule.Embedded()
	if err != nil {
		return nil, err
	}
	if o.rulesDir != "" {
		own, err := rule.LoadDir(os.DirFS(o.rulesDir), ".")
		if err != nil {
			return nil, err
		}
		rules = rule.Override(rules, own)
	}
	return detect.New(detect.Options{
		Rules:          rules,
		TrustUserspace: o.trust,
		Nvidia:         nvidia.Options{Driver: nvidia.DriverBranch(o.driverVersion)},
	})
}

func (o *replayOptions) run(ctx context.Context, name string) error {
	if isBundle(name) {
		return o.bundle(ctx, name)
	}
	in := o.streams.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		if in, err = unzipped(f); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	p, err := o.pipeline()
	if err != nil {
		return err
	}
	text := logtext.Options{Source: host.Source(o.source), Unit: o.unit, Path: o.path}
	return replay(ctx, in, text, p, o.printer())
}

// unzipped returns a reader of the text in f, which logrotate may have compressed.
func unzipped(f io.Reader) (io.Reader, error) {
	r := bufio.NewReader(f)
	if magic, err := r.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return r, nil // also when it is too short to be compressed
	}
	return gzip.NewReader(r)
}

func (o *replayOptions) printer() *findingPrinter {
	return &findingPrinter{out: o.streams.Out, json: o.output == "json", all: o.all, told: map[incidentKey]bool{}}
}

// replay reads a text to its end. What is held back is due by the clock of the text;
// while a pipe is silent, that clock goes on.
func replay(ctx context.Context, in io.Reader, o logtext.Options, p *detect.Pipeline, print *findingPrinter) error {
	handle := func(r host.Record) error { return print.findings(p.Detect(r)) }
	idle := func(silent time.Duration) error {
		if p.Due().IsZero() {
			return nil
		}
		return print.findings(p.Flush(p.Now().Add(silent)))
	}
	if err := logtext.Read(ctx, in, o, handle, idle); err != nil {
		return err
	}
	return print.findings(p.Flush(time.Time{}))
}

// incidentKey is what makes two findings the same incident, and no worse.
type incidentKey struct {
	condition health.ConditionType
	reason    string
	subject   string
	severity  health.Severity
}
