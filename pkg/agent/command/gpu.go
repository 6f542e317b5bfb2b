package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/agent/gpu"
	"github.com/ekslogs/ekslogs/pkg/host"
)

func newGPUCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{Use: "gpu", Short: "Work on this node's GPUs"}
	cmd.AddCommand(newGPUReleaseCommand(streams))
	return cmd
}

// gpuReleaseOptions are the flags of "node-agent gpu release".
type gpuReleaseOptions struct {
	streams  genericiooptions.IOStreams
	root     string
	stateDir string
	during   time.Duration
}

func newGPUReleaseCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := &gpuReleaseOptions{streams: streams}
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Let go of the GPUs for a while",
		Long: `Make the agent of this node close NVIDIA's management library, so that a GPU can be
reset or its driver be replaced: a program that holds a GPU open blocks both.

The agent lets go within seconds, watches the kernel's log all the while, and comes
back by itself. "--for 0s" makes it come back at its next sample.`,
		Example: `  node-agent gpu release --for 15m && nvidia-smi --gpu-reset -i 3`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return o.run() },
	}
	f := cmd.Flags()
	f.StringVar(&o.root, "root", "/", "where the host's root directory lies; /host in a pod")
	f.StringVar(&o.stateDir, "state-dir", "/var/lib/node-agent", "folder on the host for what the agent remembers")
	f.DurationVar(&o.during, "for", 10*time.Minute, "for how long")
	return cmd
}

func (o *gpuReleaseOptions) run() error {
	if o.during < 0 || o.during > 24*time.Hour {
		return errors.New("--for: give a time between 0s and 24h, such as 15m")
	}
	h, err := host.New(o.root)
	if err != nil {
		return err
	}
	until := time.Now().Add(o.during)
	if err := gpu.Release(h.Path(o.stateDir), until); err != nil {
		return fmt.Errorf("tell the agent: %w; this takes root, on the node or in the agent's pod", err)
	}
	_, err = fmt.Fprintf(o.streams.Out, "the GPUs are left alone until %s\n", until.Format(time.RFC3339))
	return err
}
