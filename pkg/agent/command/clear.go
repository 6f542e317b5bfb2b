package command

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/agent/monitor"
)

func newClearCommand(streams genericiooptions.IOStreams) *cobra.Command {
	var stateDir string
	cmd := &cobra.Command{
		Use:   "clear REASON[/SUBJECT]",
		Short: "Tell the agent of this node that a fault is over",
		Long: `Tell the agent that runs on this node that a fault is over which it cannot see
ending by itself: one that only a reboot or nothing ends. Who said so and when is
kept in the node's history.

The same can be said from afar:
  kubectl annotate node NODE ekslogs.io/all-clear=REASON[/SUBJECT]`,
		Example: "  node-agent clear NvidiaRowRemapFailure/GPU-6f2c9a3e",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return giveAllClear(streams, stateDir, args[0], time.Now())
		},
	}
	cmd.Flags().StringVar(&stateDir, "state-dir", "/var/lib/node-agent", "the agent's state directory, as this process sees it")
	return cmd
}

func giveAllClear(streams genericiooptions.IOStreams, stateDir, what string, now time.Time) error {
	reason, subject, _ := strings.Cut(what, "/")
	if reason == "" {
		return errors.New("say which reason is over, such as NvidiaRowRemapFailure; the Node's conditions name it")
	}
	if _, err := os.Stat(filepath.Join(stateDir, "ledger.json")); err != nil {
		return fmt.Errorf("no agent keeps its state in %s: %w; give --state-dir", stateDir, err)
	}
	if err := monitor.GiveOrder(stateDir, monitor.Order{Reason: reason, Subject: subject, By: whoami(), At: now}); err != nil {
		return fmt.Errorf("%w; run it as root", err)
	}
	fmt.Fprintf(streams.Out, "the agent is told that %s is over\n", what)
	return nil
}

// whoami is the person behind sudo, when there is one.
func whoami() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
