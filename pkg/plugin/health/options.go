package health

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ekslogs/ekslogs/pkg/plugin/health/fleet"
	"github.com/ekslogs/ekslogs/pkg/plugin/health/screen"
	"github.com/ekslogs/ekslogs/pkg/plugin/suggest"
)

// Options is what the user of "nodes summary" asked for.
type Options struct {
	// Nodes are names of nodes. Without them and Selector, all nodes are meant.
	Nodes    []string
	Selector string
	// Unhealthy leaves out nodes that are healthy or that nobody monitors.
	Unhealthy bool
	SortBy    string
	GroupBy   string
	// Output is empty, wide, json, yaml, name, or a template of cli-runtime.
	Output    string
	Columns   []string
	Watch     bool
	ExitCode  bool
	NoHeaders bool
	// Warnings is how far back warnings count; 0 leaves Events unread.
	Warnings time.Duration
	// RepairPolicy is a file; empty is Karpenter's and EKS's policy.
	RepairPolicy string

	policy *fleet.Policy
}

func newOptions() *Options {
	return &Options{SortBy: string(fleet.BySeverity), Warnings: time.Hour}
}

// bind adds the flags of the options, in the order in which help shows them.
func (o *Options) bind(f *pflag.FlagSet) {
	f.StringVarP(&o.Selector, "selector", "l", o.Selector, "Only the nodes with these labels, for example key=value,key2 in (a,b)")
	f.BoolVar(&o.Unhealthy, "unhealthy", o.Unhealthy, "Only nodes that are sick, stale or have warnings")
	f.StringVar(&o.SortBy, "sort-by", o.SortBy, "Order of the nodes: "+strings.Join(orders(), ", "))
	f.StringVar(&o.GroupBy, "group-by", o.GroupBy, "Totals by the values of this label as well")
	f.StringVarP(&o.Output, "output", "o", o.Output, "Form of the result: wide, json, yaml, name, jsonpath=…, go-template=…")
	f.StringSliceVar(&o.Columns, "columns", o.Columns, "Only these columns, in this order, for example NODE,ACCEL,REPAIR")
	f.BoolVarP(&o.Watch, "watch", "w", o.Watch, "Go on showing changes")
	f.BoolVar(&o.ExitCode, "exit-code", o.ExitCode, "Exit with 3 if a node is sick, else 4 if one is stale or unmonitored, else 2 if one has warnings")
	f.DurationVar(&o.Warnings, "warnings", o.Warnings, "How far back warnings count; 0 reads no Events")
	f.StringVar(&o.RepairPolicy, "repair-policy", o.RepairPolicy, "File that says what replaces nodes when (default: as Karpenter and EKS do)")
	f.BoolVar(&o.NoHeaders, "no-headers", o.NoHeaders, "Only the lines of nodes: no totals, no names of columns")
}

// Validate reports what contradicts itself or makes no sense, before anything is asked
// of a cluster. It brings names into their plain form and reads the policy.
func (o *Options) Validate() error {
	var err error
	if o.Nodes, err = nodeNames(o.Nodes); err != nil {
		return err
	}
	if err := checkSelector(o.Selector); err != nil {
		return err
	}
	if !slices.Contains(orders(), o.SortBy) {
		return fmt.Errorf("--sort-by %s: unknown order; use one of %s.%s", o.SortBy, strings.Join(orders(), ", "), suggest.Sentence(suggest.Near(o.SortBy, orders(), 1)))
	}
	if o.GroupBy != "" {
		if problems := validation.IsQualifiedName(o.GroupBy); len(problems) > 0 {
			return fmt.Errorf("--group-by %q is not the name of a label: %s", o.GroupBy, problems[0])
		}
	}
	for i, c := range o.Columns {
		o.Columns[i] = strings.ToUpper(strings.TrimSpace(c))
		if !slices.Contains(screen.Columns(), o.Columns[i]) {
			return fmt.Errorf("--columns: there is no column %q.%s The columns are %s", c,
				suggest.Sentence(suggest.Near(c, screen.Columns(), 3)), strings.Join(screen.Columns(), ", "))
		}
	}
	switch {
	case len(o.Nodes) > 0 && o.Selector != "":
		return errors.New("node names and -l SELECTOR exclude each other: use one of them")
	case o.Warnings < 0:
		return errors.New("--warnings must not be negative, for example 1h")
	case o.Watch && !o.table():
		return fmt.Errorf("--watch shows a table and -o %s does not: use one of them", o.Output)
	case o.Watch && o.ExitCode:
		return errors.New("--watch does not end by itself, so --exit-code has nothing to say: use one of them")
	case len(o.Columns) > 0 && !o.table():
		return fmt.Errorf("--columns is for the table and -o %s is none: use one of them", o.Output)
	}
	if !o.table() {
		if _, err := printer(o.Output); err != nil {
			return err
		}
	}
	o.policy, err = loadPolicy(o.RepairPolicy)
	return err
}

// table reports whether the result is for a person.
func (o *Options) table() bool { return o.Output == "" || o.Output == "wide" }

func (o *Options) keep() fleet.Keep {
	k := o.policy.Keep()
	if o.GroupBy != "" {
		k.Labels = append(k.Labels, o.GroupBy)
	}
	return k
}

func orders() []string {
	var out []string
	for _, o := range fleet.Orders() {
		out = append(out, string(o))
	}
	return out
}

func checkSelector(s string) error {
	if _, err := labels.Parse(s); err != nil {
		return fmt.Errorf("-l %q is not a label selector: %w", s, err)
	}
	return nil
}

// nodeNames are names as kubectl prints and takes them, each once.
func nodeNames(args []string) ([]string, error) {
	var names []string
	for _, arg := range args {
		name := strings.TrimPrefix(strings.TrimPrefix(arg, "node/"), "nodes/")
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return nil, fmt.Errorf("%q is not the name of a node: %s", arg, problems[0])
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// maxPolicy bounds a policy file.
const maxPolicy = 1 << 20

func loadPolicy(path string) (*fleet.Policy, error) {
	if path == "" {
		return fleet.DefaultPolicy(), nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("--repair-policy: %w", err)
	}
	if info.Size() > maxPolicy {
		return nil, fmt.Errorf("--repair-policy %s: it has %d bytes, more than any policy needs", path, info.Size())
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--repair-policy: %w", err)
	}
	p, err := fleet.ParsePolicy(b)
	if err != nil {
		return nil, fmt.Errorf("--repair-policy %s: %w (docs/kubectl-health.md has an example)", path, err)
	}
	return p, nil
}
