package command

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia/nvmlhelper"
)

// newNVMLHelperCommand is the process that makes all calls into NVIDIA's driver, so
// that a driver that hangs takes it along and not the agent.
func newNVMLHelperCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var library string
	cmd := &cobra.Command{
		Use:    "nvml-helper",
		Short:  "Read NVIDIA's management library for the agent that started this process",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return nvmlhelper.Serve(streams.In, streams.Out, library)
		},
	}
	cmd.Flags().StringVar(&library, "library", "", "path of libnvidia-ml.so.1 (default: where the dynamic linker finds it)")
	return cmd
}
