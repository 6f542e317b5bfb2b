//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestInteropPlainKubectlBringsTheBundleHome(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, e *env) {
		out := filepath.Join(t.TempDir(), "bundle.tar.gz")
		script := e.command("bash", filepath.Join(e.Repo, "test/e2e/testdata/interop.sh"))
		script.Env = append(script.Env, "OUT="+out)
		said := e.output(script)
		if !strings.Contains(said, "reason: Success\n") && !strings.Contains(said, "reason: SuccessWithErrors\n") {
			t.Errorf("the capture's reason is neither Success nor SuccessWithErrors:\n%s", said)
		}
		manifest := checkBundle(t, out)
		t.Logf("%d items in the manifest", len(manifest.Items))
	})
}

func TestDeletingTheDiagnosticRemovesTheBundleFromTheNode(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, e *env) {
		out := filepath.Join(t.TempDir(), "bundle.tar.gz")
		script := e.command("bash", filepath.Join(e.Repo, "test/e2e/testdata/interop.sh"))
		script.Env = append(script.Env, "OUT="+out)
		e.output(script)
		eventually(t, "an empty support folder", func() bool {
			return e.enter("find", "/var/log/support", "-name", "*.tar.gz*") == ""
		})
	})
}
