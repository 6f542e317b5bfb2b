package health

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/internal/version"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/cluster"
	"github.com/ekslogs/ekslogs/pkg/plugin/suggest"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

const rootLong = `The health of the nodes of a cluster beyond Ready: which node has which fault since
when, and when it will be replaced.

It reads conditions, Events, and the annotation ekslogs.io/health of ekslogs'
node-agent. With the EKS node monitoring agent it shows that one's conditions, and
without any agent those of the kubelet.`

// shell is what all commands share: the way to the cluster, the streams and the
// process's environment.
type shell struct {
	access  *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
	environ []string
	color   string
}

// New returns the command. environ is the process's environment.
func New(streams genericiooptions.IOStreams, environ []string) *cobra.Command {
	sh := &shell{access: genericclioptions.NewConfigFlags(true), streams: streams, environ: environ, color: string(term.Auto)}
	root := &cobra.Command{
		Use:           "kubectl-health",
		Short:         "See which nodes are sick, and why",
		Long:          rootLong,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl health"},
		Version:       version.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	sh.access.AddFlags(root.PersistentFlags())
	root.PersistentFlags().StringVar(&sh.color, "color", sh.color, "When to use colours: auto, always or never")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())
	})
	root.SetUsageFunc(usage)
	nodes := &cobra.Command{
		Use:     "nodes",
		Aliases: []string{"node", "no"},
		Short:   "The health of nodes",
		Args:    unknownCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	nodes.AddCommand(newSummaryCommand(sh), newDescribeCommand(sh), newWatchCommand(sh))
	root.AddCommand(nodes, newEventsCommand(sh), newReasonsCommand(sh))
	completeFlags(root, sh)
	return root
}

// unknownCommand refuses what is no subcommand, and says what is.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return fmt.Errorf("%s has no command %q.%s (see %s --help)", cmd.CommandPath(), args[0],
		suggest.Sentence(suggest.Near(args[0], names, 3)), cmd.CommandPath())
}

// connect makes the clients; it asks the cluster nothing.
func (sh *shell) connect() (*cluster.Cluster, error) { return cluster.Connect(sh.access) }

// screens are the two outputs as a person sees them.
func (sh *shell) screens() (out, errOut *term.Stream, err error) {
	mode, err := term.ParseMode(sh.color)
	if err != nil {
		return nil, nil, err
	}
	return term.New(sh.streams.Out, sh.environ, mode), term.New(sh.streams.ErrOut, sh.environ, mode), nil
}

// usage prints our own flags apart from those for access to the cluster.
func usage(cmd *cobra.Command) error {
	own, access := pflag.NewFlagSet("own", pflag.ContinueOnError), pflag.NewFlagSet("access", pflag.ContinueOnError)
	own.SortFlags = false
	cmd.LocalNonPersistentFlags().VisitAll(own.AddFlag)
	for _, set := range []*pflag.FlagSet{cmd.InheritedFlags(), cmd.PersistentFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if f.Name == "color" {
				own.AddFlag(f)
			} else if own.Lookup(f.Name) == nil {
				access.AddFlag(f)
			}
		})
	}
	w := cmd.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n  %s\n", cmd.UseLine())
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(w, "\nCommands:")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(w, "  %-10s %s\n", c.Name(), c.Short)
			}
		}
	}
	if cmd.Example != "" {
		fmt.Fprintf(w, "\nExamples:\n%s\n", cmd.Example)
	}
	fmt.Fprintf(w, "\nFlags:\n%s", own.FlagUsages())
	_, err := fmt.Fprintf(w, "\nFlags for access to the cluster:\n%s", access.FlagUsages())
	return err
}

// printLines writes lines to a stream in one piece.
func printLines(w io.Writer, lines []string) error {
	n := 0
	for _, l := range lines {
		n += len(l) + 1
	}
	b := make([]byte, 0, n)
	for _, l := range lines {
		b = append(append(b, l...), '\n')
	}
	_, err := w.Write(b)
	return err
}
