package health

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/cluster"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/screen"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

const summaryLong = `The health of nodes: totals first, then a line for each node, the sick ones on top.

Columns:
  NODE      Its name.
  VERDICT   Sick: a condition says that something is at fault.
            Stale: what is known is older than 11 minutes, with its age.
            Warning: all conditions are well, and there were warnings lately.
            Unmonitored: the kubelet is well and no agent watches the rest.
            Healthy: all that is watched is well.
  KERNEL, RUNTIME, NETWORK, STORAGE, ACCEL
            The agent's conditions: ✔ well, ✘ at fault with the reason, – not
            monitored (which is not well), ? stale with its age. "?14m" behind a
            reason says that the fault was last confirmed 14 minutes ago.
  READY     The kubelet's Ready, pressure and network conditions.
  REASON    The worst reason. In narrow terminals it stands for those in the cells.
  WARNINGS  The newest warning of the last hour (--warnings), and how many more; ?
            if they cannot be read.
  SINCE     How long the verdict's cause has lasted.
  REPAIR    When the node would be replaced: "in 6m12s", "due 3m ago", "blocked:
            3/12 unhealthy > 20 %" when too much of its pool is unhealthy, "silenced"
            when somebody said that it shall not, – when nothing is wrong or nothing
            is known that would (neither a Karpenter node pool nor an EKS node group).
            Karpenter and EKS act after 10 minutes for accelerators and 30 for the
            rest. Whether their repair is switched on cannot be seen on a node.
  AGENT     Who watches: ekslogs with its version, eks, other, – for nobody.
  With -o wide: GPUS (ok/total), INSTANCE-TYPE, ZONE, NODEPOOL, REASON, MESSAGE.

"NvidiaXID79Error: 5/5 on ami-…, 5/40 nodes" says that all five nodes with that reason
share what only five of all forty have, beyond chance (Fisher's exact test, p < 0.01).

Terminals that are too narrow lose columns, the least important first. Exit codes: 0,
1 for errors, and those of --exit-code.`

const summaryExamples = `  # All nodes, the sick ones on top
  kubectl health nodes summary

  # What is wrong in one node pool, and go on watching
  kubectl health nodes summary -l karpenter.sh/nodepool=gpu --unhealthy --watch

  # Totals by zone
  kubectl health nodes summary --group-by topology.kubernetes.io/zone

  # In scripts: 3 if a node is sick
  kubectl health nodes summary --exit-code > /dev/null
  kubectl health nodes summary -o json | jq -r '.items[] | select(.verdict == "Sick").metadata.name'
  kubectl health nodes summary --unhealthy -o name | xargs kubectl cordon`

func newSummaryCommand(sh *shell) *cobra.Command {
	o := newOptions()
	cmd := &cobra.Command{
		Use:               "summary [NODE...] [-l SELECTOR]",
		Short:             "The health of the fleet on one screen",
		Long:              summaryLong,
		Example:           summaryExamples,
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
			if o.Watch {
				return follow(cmd.Context(), sh, c, o)
			}
			return summarize(cmd.Context(), sh, c, o)
		},
	}
	cmd.Flags().SortFlags = false
	o.bind(cmd.Flags())
	return cmd
}

// summarize prints the health of the nodes once.
func summarize(ctx context.Context, sh *shell, c *cluster.Cluster, o *Options) error {
	out, errOut, err := sh.screens()
	if err != nil {
		return err
	}
	s, err := read(ctx, c, o)
	if err != nil {
		return err
	}
	totals := fleet.Count(s.rows)
	if err := printSnapshot(out, s, o); err != nil {
		return err
	}
	for _, note := range append(s.missing, skewNote(c.Skew())) {
		if note != "" {
			fmt.Fprintln(errOut, errOut.Paint(term.Dim, "note: "+note))
		}
	}
	for _, err := range s.unknown {
		fmt.Fprintln(errOut, "error: "+err.Error())
	}
	switch {
	case len(s.unknown) > 0:
		return &exitStatus{exitError}
	case len(s.rows) == 0:
		fmt.Fprintln(errOut, "no nodes found")
		if o.ExitCode {
			return &exitStatus{exitUnknown}
		}
	case o.ExitCode && totals.ExitCode() != exitOK:
		return &exitStatus{totals.ExitCode()}
	}
	return nil
}

// printSnapshot prints the result in the form that was asked for.
func printSnapshot(out *term.Stream, s *snapshot, o *Options) error {
	if !o.table() {
		return printTyped(out, s, o)
	}
	if len(s.rows) == 0 {
		return nil
	}
	width, _ := out.Size()
	return printLines(out, tableLines(out, s.rows, chosen(s.rows, o), s.view, o, width))
}

// tableLines is the screen of a summary: totals of all rows, and a table of those
// shown.
func tableLines(out *term.Stream, rows, shown []*fleet.Row, view fleet.View, o *Options, width int) []string {
	var lines []string
	if !o.NoHeaders {
		lines = append(lines, term.Fit(screen.Totals(out, fleet.Count(rows)), width))
		lines = append(lines, screen.Shares(out, fleet.Shares(rows), width)...)
	}
	if o.GroupBy != "" {
		groups := screen.Groups(out, o.GroupBy, fleet.GroupBy(rows, o.GroupBy), width)
		if o.NoHeaders {
			groups = groups[1:]
		}
		lines = append(append(lines, groups...), "")
	}
	table := screen.Summary(out, shown, screen.SummaryOptions{
		Width: width, Wide: o.Output == "wide", Columns: o.Columns, Now: view.Now,
	})
	if o.NoHeaders || len(table) == 1 {
		table = table[1:]
	}
	return append(lines, table...)
}

// chosen are the rows to show, sorted. rows stays as it is.
func chosen(rows []*fleet.Row, o *Options) []*fleet.Row {
	var out []*fleet.Row
	if o.Unhealthy {
		out = slices.DeleteFunc(slices.Clone(rows), func(r *fleet.Row) bool { return r.Verdict.Rank() < fleet.VerdictWarning.Rank() })
	} else {
		out = slices.Clone(rows)
	}
	fleet.Sort(out, fleet.Order(o.SortBy))
	return out
}
