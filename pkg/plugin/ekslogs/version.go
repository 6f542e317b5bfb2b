package ekslogs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apiversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/internal/version"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// versionTimeout bounds the look at the cluster: who asks for a version may have no
// cluster at hand.
const versionTimeout = 5 * time.Second

// printVersion prints the version of this program and those of the agents, and warns
// if they do not go together.
func printVersion(ctx context.Context, access *genericclioptions.ConfigFlags, o *Options, streams genericiooptions.IOStreams) error {
	fmt.Fprintf(streams.Out, "kubectl-ekslogs %s\n", version.Version())
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	nodes, err := agentVersions(ctx, access, o)
	switch {
	case err != nil:
		fmt.Fprintf(streams.Out, "agent           unknown (%s)\n", term.Clean(err.Error()))
		return nil
	case len(nodes) == 0:
		fmt.Fprintln(streams.Out, "agent           unknown (no node says; agents of another make do not)")
		return nil
	}
	for _, v := range slices.Sorted(maps.Keys(nodes)) {
		fmt.Fprintf(streams.Out, "agent           %s on %s\n", term.Clean(v), plural(len(nodes[v]), "node"))
		if skewed(version.Version(), v) {
			fmt.Fprintln(streams.ErrOut, skewWarning(version.Version(), v, nodes[v][0]))
		}
	}
	return nil
}

// agentVersions maps versions to the nodes whose agent has it.
func agentVersions(ctx context.Context, access *genericclioptions.ConfigFlags, o *Options) (map[string][]string, error) {
	c, err := connect(access)
	if err != nil {
		return nil, err
	}
	metas, err := c.nodeMeta(ctx, o.Selector)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, errors.New("the cluster does not answer")
		}
		return nil, err
	}
	found := map[string][]string{}
	for _, m := range metas {
		if len(o.Nodes) > 0 && !slices.Contains(o.Nodes, m.Name) {
			continue
		}
		if h, err := annotation.Decode(m.Annotations[annotation.Key]); err == nil && h.AgentVersion != "" {
			found[h.AgentVersion] = append(found[h.AgentVersion], m.Name)
		}
	}
	return found, nil
}

// skewed reports whether two releases differ in more than their patch level.
// Builds without a release number are never skewed.
func skewed(client, agent string) bool {
	a, err := apiversion.ParseSemantic(client)
	if err != nil {
		return false
	}
	b, err := apiversion.ParseSemantic(agent)
	return err == nil && (a.Major() != b.Major() || a.Minor() != b.Minor())
}

func skewWarning(client, agent, node string) string {
	return fmt.Sprintf("warning: kubectl-ekslogs is %s, the agent on %s is %s: newer options may have no effect; use the same minor release",
		client, node, term.Clean(agent))
}
