// Package command is the command line of node-agent: one file a verb.
package command

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/internal/version"
)

// New returns the root command. Results go to streams.Out, everything said to a
// person to streams.ErrOut.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:           "node-agent",
		Short:         "Find the faults of a Kubernetes node and bring its logs home",
		Version:       version.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.AddCommand(
		newCollectCommand(streams),
		newRunCommand(streams),
		newCaptureCommand(streams),
		newReplayCommand(streams),
		newReasonsCommand(streams),
		newConfigCommand(streams),
		newInjectCommand(streams),
		newClearCommand(streams),
		newRulesCommand(streams),
		newGPUCommand(streams),
		newNVMLHelperCommand(streams),
		newAskFilesystemsCommand(streams),
		newScanCommand(streams),
	)
	hintUsage(root)
	return root
}
