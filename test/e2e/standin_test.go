//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/ekslogs/ekslogs/test/standin"
)

// startStandIn runs an agent that does what the contract says and nothing else, in
// this process.
func startStandIn(e *env, work time.Duration) (bundle []byte) {
	e.t.Helper()
	bundle, err := standin.Pack("system/ps.txt", "PID\n1\n")
	if err != nil {
		e.t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", e.Kubeconfig())
	if err != nil {
		e.t.Fatal(err)
	}
	ns, err := e.MountNamespace()
	if err != nil {
		e.t.Fatal(err)
	}
	// /proc/PID/ns/mnt → /proc/PID/root: the node's files as it sees them.
	root := filepath.Join(filepath.Dir(filepath.Dir(ns)), "root")
	a := &standin.Agent{Node: node, Dir: filepath.Join(root, "var/log/support"), Work: work, Bundle: bundle}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, cfg) }()
	e.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			e.t.Error(err)
		}
	})
	return bundle
}

func TestPluginWorksWithAnAgentThatOnlySetsCaptureStatuses(t *testing.T) {
	e := newEnv(t)
	want := startStandIn(e, time.Second)
	dir := t.TempDir()
	table := e.output(e.command("kubectl", "ekslogs", node, "-d", dir, "--extract"))
	if !strings.Contains(table, "Success") {
		t.Errorf("table:\n%s", table)
	}
	if got, err := os.ReadFile(filepath.Join(dir, node+"-logs.tar.gz")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want the %d of the node; %v", len(got), len(want), err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, node+"-logs", "system", "ps.txt")); err != nil || string(got) != "PID\n1\n" {
		t.Errorf("extracted: %q, %v", got, err)
	}
	if left := e.kubectl("get", "nodediagnostics", "-o", "name"); left != "" {
		t.Errorf("left in the cluster: %s", left)
	}
}

func TestPluginCleansUpOnCtrlC(t *testing.T) {
	e := newEnv(t)
	startStandIn(e, time.Hour)
	dir := t.TempDir()
	cmd := e.command("kubectl-ekslogs", node, "-d", dir)
	cmd.Path = program(e.Cluster, "kubectl-ekslogs")
	cmd.Err = nil
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "running capture", func() bool {
		return e.kubectl("get", "nodediagnostics", "-o", "jsonpath={.items[*].status.captureStatuses[0].state.running.startedAt}") != ""
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 130 {
		t.Errorf("error %v, want exit code 130\n%s", err, said.Bytes())
	}
	if left := e.kubectl("get", "nodediagnostics", "-o", "name"); left != "" {
		t.Errorf("left in the cluster: %s", left)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left in the folder: %v", entries)
	}
}

// refused runs the plugin, which has to fail with the exit code, and returns what it
// said.
func (e *env) refused(code int, args ...string) string {
	e.t.Helper()
	cmd := e.command("kubectl", append([]string{"ekslogs"}, args...)...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != code {
		e.t.Errorf("%v: error %v, want exit code %d\n%s", args, err, code, said.Bytes())
	}
	return said.String()
}

func TestPluginToldNoByTheAPIServerNamesTheMissingRule(t *testing.T) {
	e := newEnv(t)
	startStandIn(e, 0)
	e.kubectl("create", "clusterrole", "e2e-half", "--verb=get,list,watch,create,delete", "--resource=nodediagnostics.eks.amazonaws.com")
	t.Cleanup(func() { e.kubectl("delete", "clusterrole", "e2e-half", "--ignore-not-found") })
	e.kubectl("create", "clusterrolebinding", "e2e-half", "--clusterrole=e2e-half", "--user=half")
	t.Cleanup(func() { e.kubectl("delete", "clusterrolebinding", "e2e-half", "--ignore-not-found") })

	said := e.refused(1, node, "--as", "nobody")
	if !strings.Contains(said, `resources: ["nodes/proxy"]`) {
		t.Errorf("to one who may do nothing: %s", said)
	}
	said = e.refused(1, node, "--as", "half")
	for _, want := range []string{`you may not "get" nodes/proxy`, `resources: ["nodes/proxy"]`, `verbs: ["get"]`} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not say %s:\n%s", want, said)
		}
	}
	if left := e.kubectl("get", "nodediagnostics", "-o", "name"); left != "" {
		t.Errorf("left in the cluster: %s", left)
	}
}

func TestPluginRefusesAFolderInTheBundlesPlace(t *testing.T) {
	e := newEnv(t)
	e.enter("mkdir", "-p", "/var/log/support/"+node+"-logs.tar.gz")
	file := filepath.Join(t.TempDir(), "nd.yaml")
	manifest := "apiVersion: eks.amazonaws.com/v1alpha1\nkind: NodeDiagnostic\nmetadata: {name: " + node + "}\nspec: {logCapture: {destination: node}}\n"
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	e.kubectl("create", "-f", file)
	if said := e.refused(2, node); !strings.Contains(said, "exists already") || !strings.Contains(said, "kubectl-create") {
		t.Errorf("of the object that is there it says: %s", said)
	}
	e.kubectl("patch", "nodediagnostic", node, "--subresource=status", "--type=merge", "-p",
		`{"status":{"captureStatuses":[{"type":"Log","state":{"completed":{"reason":"Success","message":"","startedAt":"2026-01-01T00:00:00Z","finishedAt":"2026-01-01T00:00:01Z"}}}]}}`)
	if said := e.refused(2, node, "--attach"); !strings.Contains(said, "folder in the bundle's place") {
		t.Errorf("it says: %s", said)
	}
	if left := e.kubectl("get", "nodediagnostics", "-o", "name"); left == "" {
		t.Error("an object that it did not make was deleted")
	}
}

func TestPluginCompletesNamesOfNodes(t *testing.T) {
	e := newEnv(t)
	cmd := e.command("kubectl", "__complete", "ekslogs", "node")
	helper := filepath.Join(t.TempDir(), "kubectl_complete-ekslogs")
	if err := os.Symlink(program(e.Cluster, "kubectl-ekslogs"), helper); err != nil {
		t.Fatal(err)
	}
	for i, v := range cmd.Env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			cmd.Env[i] = "PATH=" + filepath.Dir(helper) + ":" + path
		}
	}
	if said := e.output(cmd); !strings.Contains(said, node+"\n") {
		t.Errorf("kubectl completes %q", said)
	}
}
