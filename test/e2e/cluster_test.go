//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ekslogs/ekslogs/test/cluster/onenode"
)

// node is the name of the cluster's node.
const node = onenode.NodeName

// env is the cluster as a test sees it.
type env struct {
	*onenode.Cluster
	t *testing.T
}

// newEnv returns the cluster with no NodeDiagnostic in it and no bundle on its node,
// before the test and after it.
func newEnv(t *testing.T) *env {
	t.Helper()
	c, err := onenode.New("")
	if err != nil {
		t.Fatal(err)
	}
	e := &env{c, t}
	clear := func() {
		e.kubectl("delete", "nodediagnostics", "--all", "--ignore-not-found")
		e.enter("rm", "-rf", "/var/log/support")
	}
	clear()
	t.Cleanup(clear)
	return e
}

// command is a command of a person with the administrator's kubeconfig, in whose
// PATH are kubectl and our plugins.
func (e *env) command(name string, args ...string) *exec.Cmd {
	path := fmt.Sprintf("%s:%s:%s", program(e.Cluster, ""), e.Bin(""), os.Getenv("PATH"))
	if found := e.Bin(name); name == "kubectl" {
		name = found
	}
	cmd := exec.CommandContext(e.t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.Kubeconfig(), "PATH="+path, "NODE="+node)
	cmd.Dir = e.t.TempDir()
	return cmd
}

// output runs a command that has to succeed and returns its stdout.
func (e *env) output(cmd *exec.Cmd) string {
	e.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		e.t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.String()
}

// kubectl runs kubectl, which has to succeed, and returns its stdout.
func (e *env) kubectl(args ...string) string {
	e.t.Helper()
	cmd := exec.Command(e.Bin("kubectl"), append([]string{"--kubeconfig", e.Kubeconfig()}, args...)...)
	return e.output(cmd)
}

// apply applies a manifest of the repository.
func (e *env) apply(manifest string) {
	e.t.Helper()
	e.kubectl("apply", "-f", filepath.Join(e.Repo, manifest))
}

// enter runs a program on the node, which has to succeed, and returns its stdout.
func (e *env) enter(argv ...string) string {
	e.t.Helper()
	ns, err := e.MountNamespace()
	if err != nil {
		e.t.Fatal(err)
	}
	// Not bound to the test's context, which is over when cleanups run.
	return e.output(exec.Command("nsenter", append([]string{"--mount=" + ns, "--wd=/", "--"}, argv...)...))
}
