package ekslogs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/internal/version"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// maxPreflights is how many nodes are looked at at a time, which costs them nothing.
const maxPreflights = 20

// runner fetches the bundles of several nodes.
type runner struct {
	c *cluster
	o *Options
	p progress
	// slots bounds the nodes that collect, looks those that are looked at.
	slots, looks chan struct{}
}

// run fetches the bundles that o asks for and prints the results.
func run(ctx context.Context, c *cluster, o *Options, streams genericiooptions.IOStreams, environ []string) error {
	mode := term.Auto
	if o.NoColor {
		mode = term.Never
	}
	screen := term.New(streams.ErrOut, environ, mode)
	nodes, err := resolve(ctx, c, o)
	if err != nil {
		return err
	}
	r := &runner{
		c: c, o: o,
		p:     newProgress(screen, o.Quiet, nodes),
		slots: make(chan struct{}, o.Concurrency),
		looks: make(chan struct{}, max(maxPreflights, o.Concurrency)),
	}
	stop := context.AfterFunc(ctx, func() {
		r.p.notice("interrupted: cleaning up; once more to quit at once")
	})
	results := r.all(ctx, nodes)
	stop()
	r.p.close()
	if !o.Quiet {
		warnOfSkew(screen, results)
	}
	if err := printResults(streams.Out, o, results); err != nil {
		return err
	}
	return outcome(results)
}

// resolve returns the names of the nodes to fetch from, and checks meanwhile that
// the cluster has the API for it.
func resolve(ctx context.Context, c *cluster, o *Options) ([]string, error) {
	var group errgroup.Group
	group.Go(func() error {
		ok, err := c.installed(ctx)
		if err == nil && !ok {
			err = errNotInstalled
		}
		return err
	})
	nodes := o.Nodes
	group.Go(func() error {
		if len(o.Nodes) > 0 {
			return nil
		}
		metas, err := c.nodeMeta(ctx, o.Selector)
		if err != nil {
			return explain(err, "list", "nodes")
		}
		for _, m := range metas {
			nodes = append(nodes, m.Name)
		}
		slices.Sort(nodes)
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(nodes) == 0 && o.Selector != "" {
		return nil, fmt.Errorf("no node has the labels %q", o.Selector)
	}
	if len(nodes) == 0 {
		return nil, errors.New("the cluster has no nodes")
	}
	return nodes, nil
}

// all runs the nodes beside one another and returns their results in the order of
// nodes. No node waits for another but for its turn to collect.
func (r *runner) all(ctx context.Context, nodes []string) []*Result {
	results := make([]*Result, len(nodes))
	var wg sync.WaitGroup
	for i, node := range nodes {
		results[i] = &Result{Node: node}
		wg.Go(func() {
			start := time.Now()
			r.one(ctx, results[i])
			results[i].Seconds = time.Since(start).Seconds()
			r.p.end(results[i])
		})
	}
	wg.Wait()
	return results
}

// nodeNames returns the names of all nodes, for suggestions.
func (r *runner) nodeNames(ctx context.Context) []string {
	metas, err := r.c.nodeMeta(ctx, "")
	if err != nil {
		return nil
	}
	names := make([]string, len(metas))
	for i, m := range metas {
		names[i] = m.Name
	}
	return names
}

// outcome turns results into the error that the exit code comes from.
func outcome(results []*Result) error {
	failed, hopeless := 0, 0
	for _, r := range results {
		if r.State == StateFailed {
			failed++
			if aboutTheRequest(r.err) {
				hopeless++
			}
		}
	}
	switch {
	case failed == 0:
		return nil
	case hopeless == len(results):
		return &exitStatus{exitError}
	}
	return &exitStatus{exitSomeFailed}
}

// warnOfSkew tells once if an agent is of another release than this program.
func warnOfSkew(screen *term.Stream, results []*Result) {
	for _, res := range results {
		if skewed(version.Version(), res.AgentVersion) {
			fmt.Fprintln(screen, skewWarning(version.Version(), res.AgentVersion, res.Node))
			return
		}
	}
}

// exists reports whether something has the name path already.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
