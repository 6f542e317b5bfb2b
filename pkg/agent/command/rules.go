package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/rule"
)

func newRulesCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the log rules, and test your own",
	}
	cmd.AddCommand(newRulesListCommand(streams), newRulesTestCommand(streams))
	return cmd
}

func newRulesListCommand(streams genericiooptions.IOStreams) *cobra.Command {
	output, dir := "table", ""
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the log rules",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			engine, err := loadRules(dir)
			if err != nil {
				return err
			}
			return listRules(streams.Out, engine.Rules(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "output format: table, wide or json")
	cmd.Flags().StringVar(&dir, "rules", "", "directory with rules of your own, beside or in place of the product's")
	return cmd
}

func newRulesTestCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "test [FILE...]",
		Short: "Prove rules by their samples",
		Long: `Load the product's rules together with those of the files, and check that each
matches the samples that it must match, with the fields they must give, and none of
those that it must not. A rule that another one shadows fails as well.`,
		Example: "  node-agent rules test /etc/node-agent/rules/*.yaml",
		RunE: func(_ *cobra.Command, files []string) error {
			rules, err := rule.Embedded()
			if err != nil {
				return err
			}
			for _, name := range files {
				data, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				own, err := rule.Parse(data)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				rules = rule.Override(rules, own)
			}
			engine, err := rule.New(rules, health.NewCatalog())
			if err != nil {
				return err
			}
			samples := 0
			for _, r := range engine.Rules() {
				samples += len(r.Samples.Match) + len(r.Samples.NoMatch)
			}
			_, err = fmt.Fprintf(streams.Out, "%d rules, %d samples: all as they should be\n", len(engine.Rules()), samples)
			return err
		},
	}
}

// loadRules returns the product's rules and those of a directory, proved.
func loadRules(dir string) (*rule.Engine, error) {
	rules, err := rule.Embedded()
	if err != nil {
		return nil, err
	}
	if dir != "" {
		own, err := rule.LoadDir(os.DirFS(dir), ".")
		if err != nil {
			return nil, err
		}
		rules = rule.Override(rules, own)
	}
	return rule.New(rules, health.NewCatalog())
}

func listRules(out io.Writer, rules []rule.Rule, format string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(rules)
	case "table", "wide":
	default:
		return fmt.Errorf("--output %q: use table, wide or json", format)
	}
	w := printers.GetNewTabWriter(out)
	header := "ID\tREASON\tSEVERITY\tSOURCE"
	if format == "wide" {
		header += "\tSUBJECT\tWINDOW\tPATTERN"
	}
	fmt.Fprintln(w, header)
	for _, r := range rules {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s", r.ID, r.Reason, r.Severity, sourceOf(r))
		if format == "wide" {
			fmt.Fprintf(w, "\t%s\t%s\t%s", dash(r.Subject), windowOf(r), strings.Join(r.Patterns, " | "))
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

func sourceOf(r rule.Rule) string {
	switch from := append(append([]string{}, r.Units...), r.Paths...); len(from) {
	case 0:
		return string(r.Source)
	case 1:
		return string(r.Source) + ":" + from[0]
	default:
		return fmt.Sprintf("%s:%s +%d", r.Source, from[0], len(from)-1)
	}
}

func windowOf(r rule.Rule) string {
	if r.Window == nil {
		return "-"
	}
	s := fmt.Sprintf("%d in %s", r.Window.Count, r.Window.Within.Duration)
	if r.Window.Span.Duration > 0 {
		s += fmt.Sprintf(", over %s", r.Window.Span.Duration)
	}
	return s
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
