// Package onenode brings up a real one-node Kubernetes cluster on this machine and
// takes it away again: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and a real kubelet over containerd and runc, with journald.
//
// Everything listens on loopback. The node (containerd, kubelet, and what enters
// with Enter) lives in a mount namespace of its own, in which folders of the
// cluster lie over /var/log, /var/lib/kubelet, /run/containerd and the like: it
// looks like a node, and the machine's own files stay as they are. Only one such
// cluster fits on a machine, since two kubelets would share the kubepods cgroups.
package onenode

import (
	"fmt"
	"os"
	"path/filepath"
)

// NodeName is the name of the cluster's only node.
const NodeName = "node-a"

// APIPort is where the API server listens on 127.0.0.1. There is no kube-proxy: a
// pod reaches it with hostNetwork and KUBERNETES_SERVICE_HOST and _PORT set.
const APIPort = 16443

// The other ports, all on 127.0.0.1.
const (
	etcdPort            = 23790
	etcdPeerPort        = 23800
	kubeletPort         = 10250
	kubeletHealthzPort  = 10248
	controllerPort      = 10257
	schedulerPort       = 10259
	serviceClusterRange = "10.96.0.0/16"
	serviceClusterIP    = "10.96.0.1"
)

// maxStateDir bounds the state folder's path, since unix sockets below it must fit
// into the 108 bytes of sun_path.
const maxStateDir = 64

// Cluster is a cluster by the folder that holds all its state. The zero value is
// not usable: call New.
type Cluster struct {
	// Repo is the root of the source tree, which the binaries are built from.
	Repo string
	// State is the folder of the cluster, an absolute path.
	State string
}

// New returns the cluster whose state lies in the folder state. An empty state
// means $EKSLOGS_CLUSTER, or .cluster under the source tree that the working
// directory is in. Nothing is made or started.
func New(state string) (*Cluster, error) {
	repo, err := findRepo()
	if err != nil {
		return nil, err
	}
	if state == "" {
		state = os.Getenv("EKSLOGS_CLUSTER")
	}
	if state == "" {
		state = filepath.Join(repo, ".cluster")
	}
	if state, err = filepath.Abs(state); err != nil {
		return nil, err
	}
	return &Cluster{Repo: repo, State: state}, nil
}

// findRepo returns the nearest parent of the working directory that holds this
// file's own folder.
func findRepo() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "test/cluster/allinone/go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("%s is not inside the ekslogs source tree: change into it first", dir)
		}
	}
}

// Kubeconfig is the path of the administrator's kubeconfig, which exists while the
// cluster is up.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.State, "kubeconfig") }

// Bin is the path of a program of the cluster, such as "kubectl".
func (c *Cluster) Bin(name string) string { return filepath.Join(c.State, "bin", name) }

// Log is the path of what a process of the cluster wrote to stdout and stderr.
// The kubelet and containerd write to the journal instead.
func (c *Cluster) Log(name string) string { return c.run("logs", name+".log") }

// run is a path below the folder that up makes and down removes.
func (c *Cluster) run(elem ...string) string {
	return filepath.Join(append([]string{c.State, "run"}, elem...)...)
}

func (c *Cluster) pki(name string) string { return c.run("pki", name) }

func (c *Cluster) containerdSocket() string { return c.run("node/run-containerd", "containerd.sock") }
