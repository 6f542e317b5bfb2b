package ekslogs

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// completionTimeout bounds how long a shell waits for a Tab.
const completionTimeout = 3 * time.Second

// completeNodes completes the names of nodes that are not on the line yet.
func completeNodes(access *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, err := connect(access)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
		}
		ctx := cmd.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		ctx, cancel := context.WithTimeout(ctx, completionTimeout)
		defer cancel()
		metas, err := c.nodeMeta(ctx, "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for _, m := range metas {
			if strings.HasPrefix(m.Name, toComplete) && !slices.Contains(args, m.Name) {
				names = append(names, m.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlags adds completion of the values of flags.
func completeFlags(cmd *cobra.Command, access *genericclioptions.ConfigFlags) {
	fixed := map[string]cobra.CompletionFunc{
		"category": completeCategories,
		"output":   cobra.FixedCompletions(outputs(), cobra.ShellCompDirectiveNoFileComp),
		"output-dir": func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		"context": completeContexts(access),
	}
	for flag, f := range fixed {
		// It fails only for a flag that is not there, or twice for one that is.
		_ = cmd.RegisterFlagCompletionFunc(flag, f)
	}
}

// completeCategories completes the last of several, separated by commas.
func completeCategories(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
	before := ""
	if i := strings.LastIndexByte(toComplete, ','); i >= 0 {
		before, toComplete = toComplete[:i+1], toComplete[i+1:]
	}
	var out []cobra.Completion
	for _, name := range categoryNames() {
		if len(name) >= len(toComplete) && strings.EqualFold(name[:len(toComplete)], toComplete) &&
			!strings.Contains(strings.ToLower(","+before), ","+strings.ToLower(name)+",") {
			out = append(out, before+name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func completeContexts(access *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		cfg, err := access.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for name := range cfg.Contexts {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
