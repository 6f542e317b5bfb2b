package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	health "github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/cluster"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/screen"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// eventOptions is what the user of "events" asked for.
type eventOptions struct {
	nodes     []string
	selector  string
	since     time.Duration
	reasons   []string
	noHeaders bool
}

func newEventsCommand(sh *shell) *cobra.Command {
	o := &eventOptions{since: 24 * time.Hour}
	cmd := &cobra.Command{
		Use:   "events [NODE...] [-l SELECTOR]",
		Short: "What has happened on nodes, one line per incident",
		Long: `What has happened on nodes, one line per incident, the newest last. An incident that
both an Event and a node's annotation tell of is one line. Events are gone after an hour
in most clusters; the annotation remembers the last 20 incidents of a node.`,
		Example: `  kubectl health events --since 6h
  kubectl health events -l karpenter.sh/nodepool=gpu --reason NvidiaXID79Error`,
		ValidArgsFunction: completeNodes(sh),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.nodes, err = nodeNames(args); err != nil {
				return err
			}
			if err := checkSelector(o.selector); err != nil {
				return err
			}
			if len(o.nodes) > 0 && o.selector != "" {
				return errors.New("node names and -l SELECTOR exclude each other: use one of them")
			}
			if o.since <= 0 {
				return errors.New("--since must be positive, for example 24h")
			}
			c, err := sh.connect()
			if err != nil {
				return err
			}
			return events(cmd.Context(), sh, c, o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.selector, "selector", "l", "", "Only of the nodes with these labels")
	f.DurationVar(&o.since, "since", o.since, "Only what was seen within this time")
	f.StringSliceVar(&o.reasons, "reason", nil, "Only with these reasons, for example NvidiaXID79Error")
	f.BoolVar(&o.noHeaders, "no-headers", false, "Only the lines of incidents")
	return cmd
}

func events(ctx context.Context, sh *shell, c *cluster.Cluster, o *eventOptions) error {
	out, errOut, err := sh.screens()
	if err != nil {
		return err
	}
	var (
		all       []fleet.Occurrence
		names     = map[string]bool{}
		read      cluster.Events
		eventsErr error
		group     errgroup.Group
		unknown   []error
	)
	group.Go(func() (err error) {
		var facts []*fleet.Facts
		if len(o.nodes) > 0 {
			facts, unknown, err = readNamed(ctx, c, o.nodes, fleet.Keep{})
		} else {
			err = c.Nodes(ctx, o.selector, func(n *corev1.Node) { facts = append(facts, fleet.FromNode(n, fleet.Keep{})) })
		}
		for _, f := range facts {
			names[f.Name] = true
			all = append(all, f.Incidents()...)
		}
		return err
	})
	group.Go(func() error {
		q := cluster.EventQuery{}
		if len(o.nodes) == 1 {
			q.Node = o.nodes[0]
		}
		read, eventsErr = c.Events(ctx, q, health.NewCatalog())
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	now := c.Now()
	everywhere := len(o.nodes) == 0 && o.selector == ""
	for _, e := range read.Occurrences {
		// Nodes that are gone had incidents as well: often that is why.
		if everywhere || names[e.Node] {
			all = append(all, e)
		}
	}
	list := slices.DeleteFunc(fleet.Timeline(all), func(e fleet.Occurrence) bool {
		lasting := e.Source == fleet.SourceAnnotation && e.End.IsZero()
		return !lasting && e.Last.Before(now.Add(-o.since)) || len(o.reasons) > 0 && !slices.Contains(o.reasons, e.Reason)
	})
	if len(list) > 0 {
		width, _ := out.Size()
		lines := screen.Incidents(list, now).Lines(out, width)
		if o.noHeaders {
			lines = lines[1:]
		}
		if err := printLines(out, lines); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(errOut, "no incidents within %s\n", screen.Age(now, now.Add(-o.since)))
	}
	notes := []string{eventReach(read, eventsErr, now), skewNote(c.Skew())}
	if eventsErr != nil {
		notes[0] = "Events cannot be read (" + firstLine(eventsErr) + "): these are the incidents that the nodes' annotations remember"
	}
	for _, n := range notes {
		if n != "" {
			fmt.Fprintln(errOut, errOut.Paint(term.Dim, "note: "+n))
		}
	}
	for _, err := range unknown {
		fmt.Fprintln(errOut, "error: "+err.Error())
	}
	if len(unknown) > 0 {
		return &exitStatus{exitError}
	}
	return nil
}
