//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPluginBringsTheBundleHomeAndCleansUp(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, e *env) {
		dir := t.TempDir()
		said := e.output(e.command("kubectl", "ekslogs", node, "--output-dir", dir, "-q"))
		bundles, err := filepath.Glob(filepath.Join(dir, "*.tar.gz"))
		if err != nil || len(bundles) != 1 {
			t.Fatalf("bundles %v, error %v; kubectl ekslogs said:\n%s", bundles, err, said)
		}
		if strings.TrimSpace(said) != bundles[0] {
			t.Errorf("with -q it said %q, want the path %s alone", said, bundles[0])
		}
		checkBundle(t, bundles[0])
		if left := e.kubectl("get", "nodediagnostics", "-o", "name"); left != "" {
			t.Errorf("left in the cluster: %s", left)
		}
	})
}

// eventually polls for up to half a minute.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within 30 s", what)
		}
	}
}
