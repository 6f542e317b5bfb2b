// Package lab gives benchmarks an agent that is built from this tree and answers
// for a Node object of its own on the cluster of test/cluster.
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ekslogs/ekslogs/test/cluster/onenode"
)

// Lab is a cluster that is up, and a folder with the programs to measure.
type Lab struct {
	Cluster *onenode.Cluster
	Config  *rest.Config
	Client  kubernetes.Interface
	// Dir is a folder for everything that a benchmark leaves on disk.
	Dir string
}

// New builds node-agent. Close removes everything that lies in Dir.
func New(ctx context.Context) (_ *Lab, err error) {
	c, err := onenode.New("")
	if err != nil {
		return nil, err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("%w; bring the cluster up with \"make cluster-up\"", err)
	}
	cfg.QPS = -1
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	// Beside the cluster's state, which lies on a disk: a /tmp may be in memory.
	dir, err := os.MkdirTemp(c.State, "bench-")
	if err != nil {
		return nil, err
	}
	l := &Lab{Cluster: c, Config: cfg, Client: client, Dir: dir}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-ldflags", "-s -w", "-o", l.agent(), "./cmd/node-agent")
	cmd.Dir = c.Repo
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w\n%s", cmd, err, out), l.Close())
	}
	return l, nil
}

// Close removes what New made.
func (l *Lab) Close() error { return os.RemoveAll(l.Dir) }

func (l *Lab) agent() string { return filepath.Join(l.Dir, "node-agent") }

// Machine says what a number was measured on: the processors, and what else they
// had to do in the last minute.
func Machine() string {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown load"
	}
	var online int
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		online = strings.Count(string(text), "\ncpu")
	}
	one, _, _ := strings.Cut(string(load), " ")
	return fmt.Sprintf("measured on %d cores with a load of %s before the start", online, one)
}

// createNode makes the Node object and returns what removes it.
func (l *Lab) createNode(ctx context.Context, name string) error {
	// Without a label the API server would track no managers of its fields.
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": map[string]string{"ekslogs.io/bench": "true"}},
		"spec":     map[string]any{"taints": []map[string]string{{"key": "ekslogs.io/bench", "effect": "NoSchedule"}}},
	})
	if err != nil {
		return err
	}
	return l.Client.CoreV1().RESTClient().Post().Resource("nodes").Body(body).
		SetHeader("Content-Type", "application/json").Do(ctx).Error()
}
