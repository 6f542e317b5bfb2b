package health

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	health "github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/cluster"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/screen"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

func newDescribeCommand(sh *shell) *cobra.Command {
	o := newOptions()
	cmd := &cobra.Command{
		Use:   "describe NODE...",
		Short: "All that is known of a node on one page",
		Long: `All that is known of a node on one page: its verdict, each condition with its repair
clock, active findings with evidence, meaning and what to do, its GPUs, the last
incidents, the pods that a replacement would hit, and the command that brings its logs
home. Meaning and advice come with this program, so they need no network.`,
		Example:           "  kubectl health nodes describe ip-10-0-1-42.ec2.internal",
		ValidArgsFunction: completeNodes(sh),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("which node? Name it; kubectl health nodes summary lists them")
			}
			o.Nodes = args
			if err := o.Validate(); err != nil {
				return err
			}
			c, err := sh.connect()
			if err != nil {
				return err
			}
			return describe(cmd.Context(), sh, c, o)
		},
	}
	cmd.Flags().StringVar(&o.RepairPolicy, "repair-policy", "", "File that says what replaces nodes when (default: as Karpenter and EKS do)")
	cmd.Flags().DurationVar(&o.Warnings, "warnings", o.Warnings, "How far back warnings count for the verdict")
	return cmd
}

func describe(ctx context.Context, sh *shell, c *cluster.Cluster, o *Options) error {
	out, errOut, err := sh.screens()
	if err != nil {
		return err
	}
	failed := false
	for i, name := range o.Nodes {
		one := *o
		one.Nodes = []string{name}
		p, unknown, err := page(ctx, sh, c, &one)
		if err != nil {
			return err
		}
		if unknown != nil {
			fmt.Fprintln(errOut, "error: "+unknown.Error())
			failed = true
			continue
		}
		width, _ := out.Size()
		lines := screen.Describe(out, p, health.NewCatalog(), width)
		if i > 0 {
			lines = append([]string{""}, lines...)
		}
		if err := printLines(out, lines); err != nil {
			return err
		}
	}
	if note := skewNote(c.Skew()); note != "" {
		fmt.Fprintln(errOut, errOut.Paint(term.Dim, "note: "+note))
	}
	if failed {
		return &exitStatus{exitError}
	}
	return nil
}

// page gathers what is known of the one node that o names. What cannot be read is
// named on the page; unknown says that there is no such node.
func page(ctx context.Context, sh *shell, c *cluster.Cluster, o *Options) (p *screen.Page, unknown, err error) {
	name := o.Nodes[0]
	p = &screen.Page{Policy: o.policy}
	var (
		s         *snapshot
		events    cluster.Events
		attach    bool
		group     errgroup.Group
		missing   [3]error
		unlimited = *o
	)
	// The Events are read once, with the Normal ones.
	unlimited.Warnings = 0
	group.Go(func() (err error) { s, err = read(ctx, c, &unlimited); return err })
	group.Go(func() error {
		events, missing[0] = c.Events(ctx, cluster.EventQuery{Node: name}, health.NewCatalog())
		return nil
	})
	group.Go(func() error { p.Pods, missing[1] = c.Pods(ctx, name); return nil })
	group.Go(func() error { attach, missing[2] = c.Diagnostic(ctx, name); return nil })
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	if len(s.unknown) > 0 {
		return nil, s.unknown[0], nil
	}
	s.view.Now, s.view.Window = c.Now(), o.Warnings
	s.view.Events, s.view.HaveEvents = byNode(events.Occurrences), missing[0] == nil
	f := s.rows[0].Facts
	p.Row, p.Pools, p.Now = s.view.Evaluate(f), s.view.Pools, s.view.Now
	p.Timeline = fleet.Timeline(append(f.Incidents(), events.Occurrences...))
	p.Reach = reach(f, events, missing[0], p.Now)
	p.Missing = s.missing
	for i, what := range []string{"Events", "pods", "whether a capture is under way"} {
		if missing[i] != nil {
			p.Missing = append(p.Missing, what+" ("+firstLine(missing[i])+")")
		}
	}
	p.Next = nextLine(sh, name, attach)
	return p, nil, nil
}

// reach says how far back a timeline goes, by source.
func reach(f *fleet.Facts, events cluster.Events, err error, now time.Time) string {
	var parts []string
	if f.Health != nil {
		if in := f.Incidents(); len(in) > 0 {
			parts = append(parts, fmt.Sprintf("the annotation remembers %s, back to %s ago", screen.Plural(len(in), "incident"), screen.Age(now, in[0].First)))
		} else {
			parts = append(parts, "the annotation remembers no incident")
		}
	}
	return strings.Join(append(parts, eventReach(events, err, now)), "; ")
}

// eventReach says how far back the cluster's Events go.
func eventReach(events cluster.Events, err error, now time.Time) string {
	switch {
	case err != nil:
		return "Events cannot be read"
	case events.Oldest.IsZero():
		return "the cluster holds no Events about it"
	}
	return "Events reach back " + screen.Age(now, events.Oldest)
}

// nextLine is the command that brings the node's logs home, by the same way to the
// cluster as this one.
func nextLine(sh *shell, node string, attach bool) string {
	line := "kubectl ekslogs " + node
	if attach {
		// Somebody has asked already.
		line += " --attach"
	}
	for _, arg := range accessArgs(sh) {
		line += " " + quoted(term.Clean(arg))
	}
	return line
}

// accessArgs are the flags that name the cluster, as this process got them.
func accessArgs(sh *shell) []string {
	var out []string
	for _, flag := range []struct {
		name  string
		value *string
	}{{"--kubeconfig", sh.access.KubeConfig}, {"--context", sh.access.Context}, {"--cluster", sh.access.ClusterName}} {
		if flag.value != nil && *flag.value != "" {
			out = append(out, flag.name, *flag.value)
		}
	}
	return out
}

// quoted is s as a shell takes it for one word.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:@%+=,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
