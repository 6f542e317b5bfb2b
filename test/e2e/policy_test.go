//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/pkg/kube"
)

// An agent on a node that somebody has broken into must not be able to have other
// nodes replaced.
func TestAnAgentWritesAboutItsOwnNodeOnly(t *testing.T) {
	e := newEnv(t)
	const other = "policy-test-other-node"
	manifest, err := os.ReadFile(filepath.Join(e.Repo, "packaging/node-agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rights, _, found := strings.Cut(string(manifest), "---\napiVersion: apps/v1")
	if !found {
		t.Fatal("packaging/node-agent.yaml does not end with its DaemonSet")
	}
	file := filepath.Join(t.TempDir(), "rights.yaml")
	if err := os.WriteFile(file, []byte(rights), 0o600); err != nil {
		t.Fatal(err)
	}
	e.kubectl("apply", "-f", file)
	t.Cleanup(func() {
		e.kubectl("delete", "-f", file, "--ignore-not-found")
		e.kubectl("delete", "node", other, "--ignore-not-found")
		e.kubectl("annotate", "node", node, "policy-test-")
	})
	create := e.command("kubectl", "create", "-f", "-")
	create.Stdin = strings.NewReader("{apiVersion: v1, kind: Node, metadata: {name: " + other + "}}")
	e.output(create)

	admin, err := kube.LoadConfig(e.Kubeconfig(), "e2e")
	if err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(admin)
	cfg.BearerToken = strings.TrimSpace(e.kubectl("create", "token", "node-agent", "-n", "kube-system",
		"--bound-object-kind", "Node", "--bound-object-name", node))
	core, err := kube.NewClient(cfg, corev1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	patch := func(name string) error {
		return core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(name).SubResource("status").
			Body([]byte(`{"metadata":{"annotations":{"policy-test":"x"}}}`)).Do(t.Context()).Error()
	}
	// The API server takes a moment to see a new policy.
	var refused error
	eventually(t, "refusal of a patch of another node", func() bool { refused = patch(other); return refused != nil })
	if !apierrors.IsForbidden(refused) || !strings.Contains(refused.Error(), "may write about that node only, not about "+other) {
		t.Errorf("another node: %v", refused)
	}
	if err := patch(node); err != nil {
		t.Errorf("its own node: %v", err)
	}
}
