package command

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/agent/capture"
)

// newCaptureCommand is the process that "run" starts for each capture. It is no
// part of the command line that people use: "collect" is.
func newCaptureCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:    "capture",
		Short:  "Make a bundle for the agent that started this process",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return capture.Work(cmd.Context(), streams.In, streams.Out, streams.ErrOut)
		},
	}
}
