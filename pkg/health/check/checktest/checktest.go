// Package checktest is what the tests of checks share: hosts made of files, and
// what is asked of every check.
package checktest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Tree returns a host made of files, by their path on the host.
func Tree(t *testing.T, files map[string]string) *host.Host {
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

// Memory is what a check remembers over restarts, without a disk.
type Memory map[string]string

// Get returns the value of k.
func (m Memory) Get(k string) string { return m[k] }

// Set sets it.
func (m Memory) Set(k, v string) { m[k] = v }

// Run takes one sample, which must not fail.
func Run(t *testing.T, c check.Check, h *host.Host) []health.Finding {
	t.Helper()
	fs, err := c.Run(t.Context(), h)
	if err != nil {
		t.Fatalf("%s: %v", c.Name(), err)
	}
	return fs
}

// Covered asks of checks that each has a name of its own and finds only reasons of
// its condition in the catalogue. It returns the reasons that they look for.
func Covered(t *testing.T, checks []check.Check) map[string]bool {
	t.Helper()
	catalog := health.NewCatalog()
	names, covered := map[string]bool{}, map[string]bool{}
	for _, c := range checks {
		if names[c.Name()] {
			t.Errorf("two checks are called %s", c.Name())
		}
		names[c.Name()] = true
		for _, code := range c.Reasons() {
			covered[code] = true
			if r, ok := catalog.Lookup(code); !ok || r.Condition != c.Condition() {
				t.Errorf("%s: reason %s has condition %q in the catalogue, want %s", c.Name(), code, r.Condition, c.Condition())
			}
		}
	}
	return covered
}
