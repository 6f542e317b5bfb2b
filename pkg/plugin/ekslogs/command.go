// Package ekslogs is "kubectl ekslogs": it asks the agents of nodes for log
// bundles and brings them home.
package ekslogs

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const long = `Bring the log bundles of nodes home, without SSH.

For each node it creates a NodeDiagnostic, waits until the node's agent has
collected, downloads the bundle through the API server, verifies it, and deletes
the NodeDiagnostic again. What it did not make it never deletes.

Bundles are named NODE-logs.tar.gz. Exit codes: 0 all is well, 1 nothing could be
attempted, 2 some nodes failed, 130 interrupted.`

const examples = `  # The logs of one node
  kubectl ekslogs ip-10-0-1-42.ec2.internal

  # Two nodes, into a folder of their own, ready to read
  kubectl ekslogs ip-10-0-1-42.ec2.internal ip-10-0-1-43.ec2.internal -d incident-7 --extract

  # All nodes of a node group, 20 at a time
  kubectl ekslogs -l eks.amazonaws.com/nodegroup=gpu --concurrency 20

  # Only what concerns network and runtime, of the last hour
  kubectl ekslogs ip-10-0-1-42.ec2.internal --category networking,runtime --since 1h

  # Go on with what an earlier call began
  kubectl ekslogs ip-10-0-1-42.ec2.internal --attach

  # For scripts: only the paths of the bundles, or everything as JSON
  kubectl ekslogs --all -q | xargs ls -l
  kubectl ekslogs --all -o json | jq '.items[] | select(.state != "Success")'`

// New returns the command. environ is the process's environment.
func New(streams genericiooptions.IOStreams, environ []string) *cobra.Command {
	o := &Options{OutputDir: ".", Timeout: defaultTimeout, Concurrency: defaultConcurrency}
	access := genericclioptions.NewConfigFlags(true)
	foreign := &foreignFlags{}
	var showVersion bool
	cmd := &cobra.Command{
		Use:               "kubectl-ekslogs NODE... | -l SELECTOR | --all",
		Short:             "Bring the log bundles of nodes home",
		Long:              long,
		Example:           examples,
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl ekslogs"},
		SilenceUsage:      true,
		SilenceErrors:     true,
		ValidArgsFunction: completeNodes(access),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Nodes = args
			if showVersion {
				return printVersion(cmd.Context(), access, o, streams)
			}
			if err := foreign.validate(); err != nil {
				return err
			}
			if cmd.Flags().Changed("selector") && o.Selector == "" {
				return fmt.Errorf("-l needs a selector; for all nodes use --all")
			}
			if err := o.Validate(); err != nil {
				return err
			}
			if err := o.prepareOutputDir(); err != nil {
				return err
			}
			c, err := connect(access)
			if err != nil {
				return err
			}
			return run(cmd.Context(), c, o, streams, environ)
		},
	}
	cmd.SetIn(streams.In)
	cmd.SetOut(streams.Out)
	cmd.SetErr(streams.ErrOut)

	own := pflag.NewFlagSet("own", pflag.ContinueOnError)
	own.SortFlags = false
	o.bind(own)
	own.BoolVar(&showVersion, "version", false, "Print the versions of this program and of the agents, and exit")
	foreign.bind(own)
	theirs := pflag.NewFlagSet("access", pflag.ContinueOnError)
	access.AddFlags(theirs)
	cmd.Flags().AddFlagSet(own)
	cmd.Flags().AddFlagSet(theirs)
	cmd.SetUsageFunc(usage(own, theirs))
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return fmt.Errorf("%w (see kubectl ekslogs --help)", err)
	})
	completeFlags(cmd, access)
	return cmd
}

// bind adds the flags of the options, in the order in which help shows them.
func (o *Options) bind(f *pflag.FlagSet) {
	f.VarP(&onceValue{&o.Selector, false}, "selector", "l", "Take the nodes with these labels, for example key=value,key2 in (a,b)")
	f.BoolVar(&o.All, "all", o.All, "Take all nodes of the cluster")
	f.StringVarP(&o.OutputDir, "output-dir", "d", o.OutputDir, "Folder for bundles")
	f.StringVarP(&o.Output, "output", "o", o.Output, "Form of the results: "+strings.Join(outputs(), ", "))
	f.BoolVarP(&o.Quiet, "quiet", "q", o.Quiet, "Say nothing but errors, and print only the paths of bundles")
	f.BoolVar(&o.NoColor, "no-color", o.NoColor, "Use no colours (NO_COLOR works as well)")
	f.Var(categoriesValue{&o.Categories}, "category", "What to collect: "+strings.Join(categoryNames(), ", ")+" (default All)")
	f.Var(durationValue{&o.Since}, "since", "How far back to read journals, for example 24h (default: the agent's, 10 days)")
	f.VarP(durationValue{&o.Timeout}, "timeout", "t", "How long a node may take to collect")
	f.IntVar(&o.Concurrency, "concurrency", o.Concurrency, "How many nodes to ask at a time")
	f.BoolVar(&o.Extract, "extract", o.Extract, "Extract each bundle into the folder NODE-logs as well")
	f.BoolVar(&o.Clobber, "clobber", o.Clobber, "Overwrite bundles and folders that exist")
	f.BoolVar(&o.SkipExisting, "skip-existing", o.SkipExisting, "Leave out nodes whose bundle is here already")
	f.BoolVar(&o.Keep, "keep", o.Keep, "Leave the NodeDiagnostic, and with it the bundle on the node")
	f.BoolVar(&o.Attach, "attach", o.Attach, "If a NodeDiagnostic of the node exists, take the bundle that it asks for, and leave it")
	f.BoolVar(&o.Replace, "replace", o.Replace, "If a NodeDiagnostic of the node exists, delete it and start anew")
}

// usage prints the flags in two groups: ours, and those for access to the cluster.
func usage(own, access *pflag.FlagSet) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		w := cmd.OutOrStderr()
		_, err := fmt.Fprintf(w, "Usage:\n  kubectl ekslogs NODE... | -l SELECTOR | --all [flags]\n\nExamples:\n%s\n\nFlags:\n%s\nFlags for access to the cluster:\n%s",
			cmd.Example, own.FlagUsages(), access.FlagUsages())
		return err
	}
}

// onceValue is a string flag that refuses to be given twice, where the last one
// would silently win.
type onceValue struct {
	s   *string
	set bool
}

func (v *onceValue) String() string {
	if v.s == nil {
		return ""
	}
	return *v.s
}

func (v *onceValue) Type() string { return "string" }

func (v *onceValue) Set(s string) error {
	if v.set {
		return fmt.Errorf("given twice; join them with a comma to require both")
	}
	*v.s, v.set = s, true
	return nil
}
