//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ekslogs/ekslogs/test/fleet"
)

// create makes an object as it is, its status too, and removes it after the test.
func (e *env) create(object any, resource, name string) {
	e.t.Helper()
	b, err := json.Marshal(object)
	if err != nil {
		e.t.Fatal(err)
	}
	remove := func() { e.kubectl("delete", resource, name, "--ignore-not-found", "--wait=false") }
	remove()
	e.t.Cleanup(remove)
	cmd := e.command("kubectl", "create", "-f", "-")
	cmd.Stdin = strings.NewReader(string(b))
	e.output(cmd)
}

// TestHealthScreens holds the golden screens of "kubectl health" against a real API
// server: the same scripts as the unit tests of pkg/plugin/health. They take less time
// than the node controller waits for a kubelet's first sign of life.
func TestHealthScreens(t *testing.T) {
	e := newEnv(t)
	now := time.Now()
	for _, n := range append(fleet.Light(now), fleet.Hostile(now)...) {
		e.create(n, "node", n.Name)
	}
	event := fleet.Event(now, "gpu-2.test", "AppCrash", "python[77] segfault in libtorch.so")
	e.create(event, "event", event.Name)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join(e.Repo, "pkg/plugin/health/testdata/screens"), RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("KUBECONFIG", e.Kubeconfig())
			for _, name := range []string{"kubectl-health-nodes", "kubectl_complete-health", "kubectl_complete-health-nodes"} {
				if err := os.Symlink(program(e.Cluster, "kubectl-health"), filepath.Join(env.WorkDir, name)); err != nil {
					return err
				}
			}
			env.Setenv("PATH", env.WorkDir+":"+program(e.Cluster, "")+":"+env.Getenv("PATH"))
			return nil
		},
	})
}

// TestHealthTellsOfAFaultWhileItWatches watches while a condition turns.
func TestHealthTellsOfAFaultWhileItWatches(t *testing.T) {
	e := newEnv(t)
	n := fleet.Light(time.Now())[4]
	n.Name = "watched.test"
	e.create(n, "node", n.Name)
	cmd := e.command(program(e.Cluster, "kubectl-health"), "nodes", "watch", "-l", fleet.Label+"=light")
	path := filepath.Join(t.TempDir(), "out")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	said := func(word string) bool {
		b, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(b), word)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	eventually(t, "the node is shown", func() bool { return said("watched.test") })
	e.kubectl("patch", "node", n.Name, "--subresource=status", "-p",
		`{"status":{"conditions":[{"type":"StorageReady","status":"False","reason":"EBSVolumeStuck"}]}}`)
	eventually(t, "the fault is shown", func() bool { return said("EBSVolumeStuck") })
}
