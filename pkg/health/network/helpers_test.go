package network

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
	"github.com/google/go-cmp/cmp"
)

// tree is a host made of files.
func tree(t *testing.T, files map[string]string) *host.Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func options(h *host.Host) Options {
	o := Options{Host: h, Catalog: health.NewCatalog()}
	if h != nil {
		o.Processes = proc.NewCache(h)
	}
	return o
}

// told is what matters of a finding.
type told struct {
	Reason   string
	Severity health.Severity
	Subject  string
}

func summary(fs []health.Finding) []told {
	var out []told
	for _, f := range fs {
		out = append(out, told{f.Reason, f.Severity, f.Subject})
	}
	return out
}

func wantFindings(t *testing.T, got []health.Finding, want ...told) {
	t.Helper()
	if d := cmp.Diff(want, summary(got)); d != "" {
		t.Error(d)
	}
}

// run takes one sample.
func run(t *testing.T, c check.Check, h *host.Host) []health.Finding {
	t.Helper()
	fs, err := c.Run(t.Context(), h)
	if err != nil {
		t.Fatalf("%s: %v", c.Name(), err)
	}
	return fs
}

func TestEveryCheckCoversReasonsOfItsConditionInTheCatalogue(t *testing.T) {
	catalog := health.NewCatalog()
	names := map[string]bool{}
	for _, c := range Checks(options(nil)) {
		if names[c.Name()] {
			t.Errorf("two checks are called %s", c.Name())
		}
		names[c.Name()] = true
		for _, code := range c.Reasons() {
			if r, ok := catalog.Lookup(code); !ok || r.Condition != c.Condition() {
				t.Errorf("%s: reason %s has condition %q in the catalogue, want %s", c.Name(), code, r.Condition, c.Condition())
			}
		}
	}
}
