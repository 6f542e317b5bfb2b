package health

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	health "github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/screen"
	"github.com/ekslogs/ekslogs/pkg/plugin/suggest"
)

func newReasonsCommand(sh *shell) *cobra.Command {
	return &cobra.Command{
		Use:     "reasons [CODE...]",
		Short:   "What reason codes mean and what to do, without a cluster",
		Example: "  kubectl health reasons\n  kubectl health reasons NvidiaXID79Error",
		ValidArgsFunction: func(_ *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var out []cobra.Completion
			for _, code := range reasonCodes() {
				if strings.HasPrefix(code, toComplete) {
					out = append(out, code)
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			out, _, err := sh.screens()
			if err != nil {
				return err
			}
			width, _ := out.Size()
			catalog := health.NewCatalog()
			if len(args) == 0 {
				return printLines(out, screen.Reasons(out, catalog.Reasons(), width))
			}
			var lines []string
			for i, code := range args {
				r, ok := catalog.Lookup(code)
				if !ok {
					return fmt.Errorf("the catalogue has no reason %q.%s (kubectl health reasons lists them)", code,
						suggest.Sentence(suggest.Near(code, reasonCodes(), 3)))
				}
				if i > 0 {
					lines = append(lines, "")
				}
				lines = append(lines, screen.Reason(out, code, r, width)...)
			}
			return printLines(out, lines)
		},
	}
}

// reasonCodes are all codes of the catalogue, sorted.
func reasonCodes() []string {
	var out []string
	for _, r := range health.NewCatalog().Reasons() {
		out = append(out, r.Code)
	}
	slices.Sort(out)
	return out
}
