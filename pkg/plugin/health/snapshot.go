package health

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	health "github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/cluster"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/suggest"
)

const (
	// manyNodes is from how many names on a list of all nodes is cheaper than one
	// request for each.
	manyNodes = 20
	// maxSuggest bounds how many names are read to find what was meant.
	maxSuggest = 5000
)

// snapshot is the nodes that were asked for, at a moment.
type snapshot struct {
	view fleet.View
	rows []*fleet.Row
	// missing says what could not be read, unknown which nodes are not there.
	missing []string
	unknown []error
	events  cluster.Events
}

// read asks for nodes and Events side by side.
func read(ctx context.Context, c *cluster.Cluster, o *Options) (*snapshot, error) {
	s := &snapshot{}
	var (
		facts     []*fleet.Facts
		eventsErr error
		group     errgroup.Group
	)
	group.Go(func() (err error) {
		facts, s.unknown, err = readNodes(ctx, c, o)
		return err
	})
	if o.Warnings > 0 {
		q := cluster.EventQuery{Warnings: true}
		if len(o.Nodes) == 1 {
			q.Node = o.Nodes[0]
		}
		group.Go(func() error {
			s.events, eventsErr = c.Events(ctx, q, health.NewCatalog())
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.view = fleet.View{Now: c.Now(), Policy: o.policy, Window: o.Warnings, HaveEvents: eventsErr == nil && o.Warnings > 0}
	s.view.Events = byNode(s.events.Occurrences)
	if eventsErr != nil {
		s.missing = append(s.missing, "Events ("+firstLine(eventsErr)+"): warnings are only those that the nodes' annotations remember")
	}
	if s.events.Cut {
		s.missing = append(s.missing, "some Events: the cluster has more of them about nodes than are read")
	}
	var err error
	if s.view.Pools, err = pools(ctx, c, o, facts); err != nil {
		s.missing = append(s.missing, "the other nodes of the pools ("+firstLine(err)+"): whether repair is blocked is not known")
	}
	s.rows = make([]*fleet.Row, len(facts))
	for i, f := range facts {
		s.rows[i] = s.view.Evaluate(f)
	}
	return s, nil
}

func readNodes(ctx context.Context, c *cluster.Cluster, o *Options) (facts []*fleet.Facts, unknown []error, err error) {
	keep := o.keep()
	if n := len(o.Nodes); n > 0 && n < manyNodes {
		return readNamed(ctx, c, o.Nodes, keep)
	}
	err = c.Nodes(ctx, o.Selector, func(n *corev1.Node) {
		if len(o.Nodes) == 0 || slices.Contains(o.Nodes, n.Name) {
			facts = append(facts, fleet.FromNode(n, keep))
		}
	})
	for _, name := range o.Nodes {
		if !slices.ContainsFunc(facts, func(f *fleet.Facts) bool { return f.Name == name }) {
			unknown = append(unknown, fmt.Errorf("node %q not found", name))
		}
	}
	return facts, unknown, err
}

func readNamed(ctx context.Context, c *cluster.Cluster, names []string, keep fleet.Keep) ([]*fleet.Facts, []error, error) {
	var group errgroup.Group
	var mu sync.Mutex
	found := make([]*fleet.Facts, len(names))
	var unknown []error
	for i, name := range names {
		group.Go(func() error {
			n, err := c.Node(ctx, name)
			if apierrors.IsNotFound(err) {
				mu.Lock()
				defer mu.Unlock()
				unknown = append(unknown, fmt.Errorf("node %q not found", name))
				return nil
			}
			if err == nil {
				found[i] = fleet.FromNode(n, keep)
			}
			return err
		})
	}
	err := group.Wait()
	found = slices.DeleteFunc(found, func(f *fleet.Facts) bool { return f == nil })
	return found, suggestNames(ctx, c, unknown), err
}

// suggestNames adds what was probably meant, if that can be read.
func suggestNames(ctx context.Context, c *cluster.Cluster, unknown []error) []error {
	if len(unknown) == 0 {
		return nil
	}
	var all []string
	if err := c.Metadata(ctx, "", maxSuggest, func(m *metav1.ObjectMeta) { all = append(all, m.Name) }); err != nil {
		return unknown
	}
	for i, err := range unknown {
		name := strings.Split(err.Error(), `"`)[1]
		if hint := suggest.Sentence(suggest.Near(name, all, 3)); hint != "" {
			unknown[i] = fmt.Errorf("%w.%s", err, hint)
		}
	}
	return unknown
}

// pools counts the nodes of the pools that limits hold for. When only some nodes were
// read, the pools of those that wait for repair are read whole.
func pools(ctx context.Context, c *cluster.Cluster, o *Options, facts []*fleet.Facts) (fleet.Pools, error) {
	if len(o.Nodes) == 0 && o.Selector == "" {
		return fleet.CountPools(o.policy, facts), nil
	}
	out := fleet.Pools{}
	var errs []error
	done := map[string]bool{}
	for _, f := range facts {
		if o.policy.RepairOf(f, nil, "").State != fleet.RepairPending {
			continue
		}
		label, value, _ := o.policy.PoolLabelOf(f)
		selector := ""
		if label != "" {
			selector = label + "=" + value
		}
		if done[selector] {
			continue
		}
		done[selector] = true
		pool := fleet.Pools{}
		errs = append(errs, c.Nodes(ctx, selector, func(n *corev1.Node) { pool.Add(o.policy, fleet.FromNode(n, o.policy.Keep())) }))
		for k, n := range pool {
			out[k] = n
		}
	}
	return out, errors.Join(errs...)
}

func byNode(all []fleet.Occurrence) map[string][]fleet.Occurrence {
	out := map[string][]fleet.Occurrence{}
	for _, o := range all {
		out[o.Node] = append(out[o.Node], o)
	}
	return out
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, ":")
}

// skewTold is from which difference on a wrong clock is told of.
const skewTold = 30 * time.Second

// skewNote says that this computer's clock is wrong, or nothing.
func skewNote(skew time.Duration) string {
	switch {
	case skew > skewTold:
		return fmt.Sprintf("this computer's clock is %s behind the API server's; ages go by the server's", skew.Round(time.Second))
	case skew < -skewTold:
		return fmt.Sprintf("this computer's clock is %s ahead of the API server's; ages go by the server's", (-skew).Round(time.Second))
	}
	return ""
}
