package rule

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ekslogs/ekslogs/pkg/health"
)

//go:embed rules/*.yaml
var embedded embed.FS

// Embedded returns the rules of the product.
func Embedded() ([]Rule, error) {
	return LoadDir(embedded, "rules")
}

// LoadDir reads all files of rules (*.yaml, *.yml) in a directory, in the order of
// their names. A directory that does not exist holds none.
func LoadDir(fsys fs.FS, dir string) ([]Rule, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	var rules []Rule
	for _, e := range entries {
		if ext := path.Ext(e.Name()); ext != ".yaml" && ext != ".yml" {
			continue
		}
		data, err := fs.ReadFile(fsys, path.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("rules: %w", err)
		}
		more, err := Parse(data)
		if err != nil {
			return nil, fmt.Errorf("rules: %s: %w", e.Name(), err)
		}
		rules = append(rules, more...)
	}
	return rules, nil
}

// Parse reads one file of rules. Unknown keys are errors. It checks no rule: New does.
func Parse(data []byte) ([]Rule, error) {
	var f File
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return nil, err
	}
	if f.APIVersion != APIVersion || f.Kind != Kind {
		return nil, fmt.Errorf("it is %q %q; want apiVersion %s, kind %s", f.APIVersion, f.Kind, APIVersion, Kind)
	}
	return f.Rules, nil
}

// New compiles rules to an engine and proves every one of them by its samples. The
// error names each rule and sample that fails. The catalogue gives a reason's
// condition and severity.
func New(rules []Rule, catalog *health.Catalog) (*Engine, error) {
	var errs []error
	var all []*compiled
	seen := map[string]bool{}
	for i, r := range rules {
		c, err := compile(r, catalog)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("rule %s: %w", nameOf(r, i), err))
			continue
		case seen[r.ID]:
			errs = append(errs, fmt.Errorf("rule %s: there are two of that id", r.ID))
			continue
		}
		seen[r.ID] = true
		all = append(all, c)
	}
	e := newEngine(all)
	for _, c := range all {
		errs = append(errs, e.prove(c)...)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return e, nil
}

func nameOf(r Rule, i int) string {
	if r.ID == "" {
		return fmt.Sprintf("number %d", i+1)
	}
	return r.ID
}

// Override returns the rules of base with those of more put in place of the ones that
// have the same id, and the others added.
func Override(base, more []Rule) []Rule {
	out := slices.Clone(base)
	for _, r := range more {
		if i := slices.IndexFunc(out, func(b Rule) bool { return strings.EqualFold(b.ID, r.ID) }); i >= 0 {
			out[i] = r
		} else {
			out = append(out, r)
		}
	}
	return out
}
