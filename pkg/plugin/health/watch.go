package health

import (
	"context"
	"errors"
	"os/exec"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	health "github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/board"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/cluster"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/live"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/screen"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// framesPerSecond bounds how often the terminal is written to.
const framesPerSecond = 20

func newWatchCommand(sh *shell) *cobra.Command {
	o := newOptions()
	o.Watch = true
	cmd := &cobra.Command{
		Use:   "watch [NODE...] [-l SELECTOR]",
		Short: "The health of the fleet, live and full-screen",
		Long: `The health of the fleet, live and full-screen: a table that can be sorted and filtered,
Enter for all that is known of a node, l to bring its logs home, ? for help. Without a
terminal it is "summary --watch".`,
		ValidArgsFunction: completeNodes(sh),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Nodes = args
			if err := o.Validate(); err != nil {
				return err
			}
			c, err := sh.connect()
			if err != nil {
				return err
			}
			out, _, err := sh.screens()
			if err != nil {
				return err
			}
			if !out.Live() {
				return follow(cmd.Context(), sh, c, o)
			}
			return watch(cmd.Context(), sh, c, o, out)
		},
	}
	all := pflag.NewFlagSet("all", pflag.ContinueOnError)
	o.bind(all)
	for _, name := range []string{"selector", "unhealthy", "sort-by", "warnings", "repair-policy"} {
		cmd.Flags().AddFlag(all.Lookup(name))
	}
	cmd.Flags().SortFlags = false
	return cmd
}

// watch shows the full-screen view until the user quits.
func watch(ctx context.Context, sh *shell, c *cluster.Cluster, o *Options, out *term.Stream) error {
	// What would never come is told before the screen is taken.
	if err := c.Reachable(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	b := start(ctx, c, o)
	source := live.Source{
		Rows: func() board.State {
			s := b.At(c.Now())
			s.Rows = named(s.Rows, o.Nodes)
			return s
		},
		Describe: func(ctx context.Context, node string, width int) ([]string, error) {
			one := *o
			one.Nodes, one.Selector = []string{node}, ""
			p, unknown, err := page(ctx, sh, c, &one)
			if err := errors.Join(err, unknown); err != nil {
				return nil, err
			}
			return screen.Describe(out, p, health.NewCatalog(), width), nil
		},
		Fetch: func(node string) *exec.Cmd {
			return exec.CommandContext(ctx, "kubectl", append([]string{"ekslogs", node, "-q"}, accessArgs(sh)...)...)
		},
	}
	model := live.New(ctx, source, out, live.Options{SortBy: fleet.Order(o.SortBy), Unhealthy: o.Unhealthy})
	p := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(sh.streams.In), tea.WithOutput(sh.streams.Out),
		tea.WithEnvironment(sh.environ), tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler())
	go b.Throttle(ctx.Done(), redrawEvery, redrawIdle, func() { p.Send(live.Refresh{}) })
	_, err := p.Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}
