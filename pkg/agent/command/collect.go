package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/internal/version"
	"github.com/ekslogs/ekslogs/pkg/collect"
	"github.com/ekslogs/ekslogs/pkg/host"
)

type collectOptions struct {
	streams    genericiooptions.IOStreams
	output     string
	categories []string
	since      time.Duration
	timeout    time.Duration
	root       string
	node       string
	dryRun     bool
}

func newCollectCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &collectOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "collect -o FILE|DIR",
		Short: "Make a log bundle of this machine, without any cluster",
		Long: `Make a log bundle of this machine, or of the one whose root directory is --root.

It is the bundle that a NodeDiagnostic object asks the agent for, but for what the
Kubernetes API knows. The path of the bundle is printed on standard output.`,
		Example: `  # Everything, into the current folder
  node-agent collect -o .

  # The last hour of networking only
  node-agent collect -o net.tar.gz --category Networking --since 1h

  # See what would be collected
  node-agent collect --dry-run

  # From a container that has the host's root at /host
  node-agent collect -o /host/var/log/support --root /host`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.dryRun {
				return o.plan(cmd)
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "the bundle, a name that ends in .tar.gz, or the folder to put it into as NODE-logs.tar.gz")
	f.StringSliceVar(&o.categories, "category", []string{string(v1alpha1.LogCategoryAll)}, "what to collect: "+categoryNames())
	f.DurationVar(&o.since, "since", collect.DefaultSince, "how far back journals are read")
	f.DurationVar(&o.timeout, "timeout", collect.DefaultTimeout, "how long collecting may take in all")
	f.StringVar(&o.root, "root", "/", "the folder that holds the root directory of the machine to collect from")
	f.StringVar(&o.node, "node-name", os.Getenv("NODE_NAME"), "the node's name in Kubernetes (default $NODE_NAME, or else the machine's name)")
	f.BoolVar(&o.dryRun, "dry-run", false, "print what would be collected, with estimated sizes, and collect nothing")
	_ = cmd.RegisterFlagCompletionFunc("category", cobra.FixedCompletions(strings.Split(categoryNames(), ", "), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func categoryNames() string {
	var names []string
	for _, c := range v1alpha1.LogCategories() {
		names = append(names, string(c))
	}
	return strings.Join(names, ", ")
}

// options turns flags into what the collector takes.
func (o *collectOptions) options() (collect.Options, error) {
	opts := collect.Options{Node: o.node, AgentVersion: version.Version(), Since: o.since, Timeout: o.timeout}
	if o.since <= 0 || o.timeout <= 0 {
		return opts, errors.New("--since and --timeout must be greater than zero, for example 24h")
	}
	for _, c := range o.categories {
		known, err := collect.ParseCategory(c)
		if err != nil {
			return opts, fmt.Errorf("--category: %w", err)
		}
		opts.Categories = append(opts.Categories, known)
	}
	h, err := host.New(o.root)
	if err != nil {
		return opts, fmt.Errorf("--root: %w", err)
	}
	opts.Host = h
	if opts.Node == "" {
		opts.Node, _ = h.ReadString("/proc/sys/kernel/hostname")
	}
	if opts.Node == "" {
		opts.Node, _ = h.ReadString("/etc/hostname")
	}
	if opts.Node == "" {
		opts.Node = "node"
	}
	if bad := validation.IsDNS1123Subdomain(opts.Node); o.node != "" && len(bad) > 0 {
		return opts, fmt.Errorf("--node-name %q is no name of a node: %s", o.node, strings.Join(bad, "; "))
	}
	return opts, nil
}

// bundlePath is where the bundle goes: into output if that is, or looks like, a
// folder.
func bundlePath(output, node string) string {
	if strings.HasSuffix(output, ".tar.gz") {
		if info, err := os.Stat(output); err != nil || !info.IsDir() {
			return output
		}
	}
	name := strings.Map(func(r rune) rune {
		if r == '/' || r < ' ' {
			return '_'
		}
		return r
	}, node)
	return filepath.Join(output, name+"-logs.tar.gz")
}

func (o *collectOptions) run(cmd *cobra.Command) error {
	opts, err := o.options()
	if err != nil {
		return err
	}
	if o.output == "" {
		return errors.New("name the bundle, or a folder for it, with -o (such as -o . for this folder)")
	}
	opts.Output = bundlePath(o.output, opts.Node)
	p := newProgressLine(o.streams.ErrOut)
	opts.Progress = p.show
	res, err := collect.Collect(cmd.Context(), opts)
	p.end()
	if err != nil {
		return err
	}
	fmt.Fprintf(o.streams.ErrOut, "%d collected, %d empty, %d absent, %d failed, %d truncated; %s in %s\n",
		res.OK, res.Empty, res.Absent, res.Failed, res.Truncated, byteSize(res.Bytes), res.Duration.Round(100*time.Millisecond))
	for _, e := range res.Errors {
		fmt.Fprintln(o.streams.ErrOut, "  "+e)
	}
	_, err = fmt.Fprintln(o.streams.Out, res.Path)
	return err
}

// plan prints the table.
func (o *collectOptions) plan(cmd *cobra.Command) error {
	opts, err := o.options()
	if err != nil {
		return err
	}
	items, err := collect.Plan(cmd.Context(), opts)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(o.streams.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "CATEGORY\tPATH\tBYTES\tBOUND\tSOURCE\tFROM")
	var total int64
	var absent int
	for _, it := range items {
		size, from := byteSize(it.Bytes), it.From
		switch {
		case it.Absent != "":
			size, from = "-", "absent: "+it.Absent
			absent++
		case it.Rough:
			size = "~" + size
		}
		total += it.Bytes
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", it.Category, it.Path, size, byteSize(it.Limit), it.Source, from)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(o.streams.ErrOut, "%d entries, about %s before compression; %d are absent here; ~ marks what only running it would tell\n",
		len(items), byteSize(total), absent)
	return nil
}

// progressLine shows how far a capture is: one line that changes on a terminal,
// elsewhere a line for each tenth.
type progressLine struct {
	w     io.Writer
	tty   bool
	tenth int
}

func newProgressLine(w io.Writer) *progressLine {
	f, ok := w.(*os.File)
	return &progressLine{w: w, tty: ok && term.IsTerminal(f.Fd())}
}

func (p *progressLine) show(s collect.Progress) {
	if p.tty {
		fmt.Fprintf(p.w, "\r\x1b[K%3d/%d  %s  %.60s", s.Done, s.Total, byteSize(s.Bytes), s.Path)
		return
	}
	if tenth := s.Done * 10 / max(1, s.Total); tenth > p.tenth {
		p.tenth = tenth
		fmt.Fprintf(p.w, "%d of %d entries, %s\n", s.Done, s.Total, byteSize(s.Bytes))
	}
}

func (p *progressLine) end() {
	if p.tty {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

// byteSize is n in the unit that a person would use.
func byteSize(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/unit, 0
	for f >= unit && i < 3 {
		f, i = f/unit, i+1
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGT"[i])
}
