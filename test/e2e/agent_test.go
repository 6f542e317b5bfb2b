//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/ekslogs/ekslogs/test/cluster/onenode"
)

// inBothModes runs a test against an agent that runs as a process on the node, and
// against one that runs as a pod. The agent gets the flags beside those it needs.
func inBothModes(t *testing.T, flags []string, test func(*testing.T, *env)) {
	for _, mode := range []struct {
		name  string
		start func(*env, []string)
	}{
		{"host process", startHostProcess},
		{"pod", startPod},
	} {
		t.Run(mode.name, func(t *testing.T) {
			e := newEnv(t)
			mode.start(e, flags)
			test(t, e)
		})
	}
}

// startHostProcess runs the agent as packaging/node-agent.service does: on the
// node, as root, with the kubelet's kubeconfig.
func startHostProcess(e *env, flags []string) {
	e.t.Helper()
	e.apply("packaging/node-agent-host-rbac.yaml")
	cmd, err := e.Enter(e.t.Context(), append([]string{program(e.Cluster, "node-agent"), "run", "--node-name", node}, flags...)...)
	if err != nil {
		e.t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		// The test's context is over: the error says so and nothing else.
		_ = cmd.Wait()
		if e.t.Failed() {
			e.t.Logf("node-agent said:\n%s", log.Bytes())
		}
	})
}

// startPod runs the agent as packaging/node-agent.yaml does, with the image of this
// tree and with the API server's address, which no kube-proxy here leads to.
func startPod(e *env, flags []string) {
	e.t.Helper()
	file := filepath.Join(e.t.TempDir(), "node-agent.yaml")
	if err := os.WriteFile(file, []byte(podManifest(e, flags)), 0o600); err != nil {
		e.t.Fatal(err)
	}
	e.kubectl("apply", "-f", file)
	e.t.Cleanup(func() {
		if e.t.Failed() {
			e.t.Log(e.kubectl("-n", "kube-system", "describe", "pods", "-l", "app.kubernetes.io/name=node-agent"))
			e.t.Log(e.kubectl("-n", "kube-system", "logs", "ds/node-agent", "--tail=100", "--ignore-errors"))
		}
		e.kubectl("delete", "-f", file, "--ignore-not-found", "--cascade=foreground", "--timeout=60s")
		e.kubectl("-n", "kube-system", "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/name=node-agent", "--timeout=60s")
	})
	e.kubectl("-n", "kube-system", "rollout", "status", "ds/node-agent", "--timeout=90s")
}

// podManifest is packaging/node-agent.yaml with its DaemonSet made to fit.
func podManifest(e *env, flags []string) string {
	e.t.Helper()
	b, err := os.ReadFile(filepath.Join(e.Repo, "packaging/node-agent.yaml"))
	if err != nil {
		e.t.Fatal(err)
	}
	var docs []string
	for doc := range strings.SplitSeq(string(b), "\n---\n") {
		if strings.Contains(doc, "kind: DaemonSet") {
			doc = fitDaemonSet(e.t, doc, flags)
		}
		docs = append(docs, doc)
	}
	return strings.Join(docs, "\n---\n")
}

func fitDaemonSet(t *testing.T, doc string, flags []string) string {
	t.Helper()
	var ds appsv1.DaemonSet
	if err := yaml.UnmarshalStrict([]byte(doc), &ds); err != nil {
		t.Fatalf("packaging/node-agent.yaml: %v", err)
	}
	pod := &ds.Spec.Template.Spec
	// Tests make Node objects that no machine stands behind.
	pod.NodeSelector["kubernetes.io/hostname"] = node
	container := &pod.Containers[0]
	container.Image, container.ImagePullPolicy = agentImage, corev1.PullNever
	container.Args = append(container.Args, flags...)
	container.Env = append(container.Env,
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: "127.0.0.1"},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: fmt.Sprint(onenode.APIPort)})
	out, err := yaml.Marshal(&ds)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
