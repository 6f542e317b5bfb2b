package health

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/screen"
)

const (
	// completionTimeout bounds how long a shell waits for a Tab.
	completionTimeout = 3 * time.Second
	// completionNodes bounds how many nodes a Tab reads.
	completionNodes = 5000
)

// noFiles says that nothing else is to be offered.
const noFiles = cobra.ShellCompDirectiveNoFileComp

// completeNodes completes the names of nodes that are not on the line yet.
func completeNodes(sh *shell) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []cobra.Completion
		ok := metadata(cmd, sh, func(m *metav1.ObjectMeta) {
			if strings.HasPrefix(m.Name, toComplete) && !slices.Contains(args, m.Name) {
				names = append(names, m.Name)
			}
		})
		if !ok {
			return nil, noFiles | cobra.ShellCompDirectiveError
		}
		return names, noFiles
	}
}

// completeLabels completes the keys of labels that nodes have, and after "KEY=" the
// values.
func completeLabels(sh *shell, values bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before, last := "", toComplete
		if i := strings.LastIndexByte(toComplete, ','); values && i >= 0 {
			before, last = toComplete[:i+1], toComplete[i+1:]
		}
		key, _, valued := strings.Cut(last, "=")
		seen := map[string]bool{}
		metadata(cmd, sh, func(m *metav1.ObjectMeta) {
			if values && valued {
				if v, ok := m.Labels[key]; ok {
					seen[key+"="+v] = true
				}
				return
			}
			for k := range m.Labels {
				seen[k] = true
			}
		})
		var out []cobra.Completion
		for s := range seen {
			if strings.HasPrefix(s, last) {
				out = append(out, before+s)
			}
		}
		slices.Sort(out)
		if values && !valued {
			return out, noFiles | cobra.ShellCompDirectiveNoSpace
		}
		return out, noFiles
	}
}

// metadata reads the metadata of nodes in the time that a Tab may take.
func metadata(cmd *cobra.Command, sh *shell, each func(*metav1.ObjectMeta)) bool {
	c, err := sh.connect()
	if err != nil {
		return false
	}
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	return c.Metadata(ctx, "", completionNodes, each) == nil
}

// completeColumns completes the last of several columns, separated by commas.
func completeColumns(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := ""
	if i := strings.LastIndexByte(toComplete, ','); i >= 0 {
		before, toComplete = toComplete[:i+1], toComplete[i+1:]
	}
	var out []cobra.Completion
	for _, name := range screen.Columns() {
		if strings.HasPrefix(name, strings.ToUpper(toComplete)) && !strings.Contains(strings.ToUpper(","+before), ","+name+",") {
			out = append(out, before+name)
		}
	}
	return out, noFiles | cobra.ShellCompDirectiveNoSpace
}

func completeContexts(sh *shell) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		cfg, err := sh.access.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, noFiles | cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for name := range cfg.Contexts {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, noFiles
	}
}

// completeFlags adds completion of the values of flags to cmd and all below it.
func completeFlags(cmd *cobra.Command, sh *shell) {
	fixed := map[string]cobra.CompletionFunc{
		"color":    cobra.FixedCompletions([]string{"auto", "always", "never"}, noFiles),
		"output":   cobra.FixedCompletions([]string{"wide", "json", "yaml", "name", "jsonpath=", "go-template="}, noFiles),
		"sort-by":  cobra.FixedCompletions(orders(), noFiles),
		"reason":   cobra.FixedCompletions(reasonCodes(), noFiles),
		"columns":  completeColumns,
		"group-by": completeLabels(sh, false),
		"selector": completeLabels(sh, true),
		"context":  completeContexts(sh),
	}
	for name, f := range fixed {
		if cmd.LocalFlags().Lookup(name) != nil {
			// It fails only for a flag that is not there, or twice for one that is.
			_ = cmd.RegisterFlagCompletionFunc(name, f)
		}
	}
	for _, c := range cmd.Commands() {
		completeFlags(c, sh)
	}
}
