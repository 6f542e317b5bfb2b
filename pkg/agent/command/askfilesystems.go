package command

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/health/storage"
)

// newAskFilesystemsCommand is the process that touches mounts which may not answer, so
// that one that hangs takes it along and not the agent.
func newAskFilesystemsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:    storage.Verb + " PATH...",
		Short:  "Tell the agent that started this process which filesystems answer",
		Hidden: true,
		Args:   cobra.MinimumNArgs(1),
		RunE:   func(_ *cobra.Command, paths []string) error { return storage.Serve(streams.Out, paths) },
	}
}
