package kube

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeletKubeconfigs are where distributions keep the kubelet's own kubeconfig:
// EKS's AMIs, Bottlerocket, kubeadm.
func kubeletKubeconfigs() []string {
	return []string{
		"/var/lib/kubelet/kubeconfig",
		"/etc/kubernetes/kubelet/kubeconfig",
		"/etc/kubernetes/kubelet.conf",
	}
}

// LoadConfig returns how to reach the API server: by the kubeconfig file when one
// is named, else by the pod's service account, else by the kubelet's kubeconfig of
// the node that this process runs on (the systemd service baked into an image).
// userAgent names the program in the API server's audit log.
//
// The config has no Timeout, which would cut watches as well: bound each request
// by its context. A dead connection is found by HTTP/2 pings within 45 s.
func LoadConfig(kubeconfig, userAgent string) (*rest.Config, error) {
	cfg, err := loadConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.UserAgent = userAgent
	cfg.WarningHandler = rest.NoWarnings{}
	// client-go's default of 5 requests a second would hold a fault back behind
	// Events. What the agent may write is bounded by its own token bucket and by one
	// patch each 250 ms.
	cfg.QPS, cfg.Burst = 50, 100
	return cfg, nil
}

func loadConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig != "" {
		cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
		}
		return cfg, nil
	}
	cfg, err := rest.InClusterConfig()
	if err == nil {
		return cfg, nil
	}
	if !errors.Is(err, rest.ErrNotInCluster) {
		return nil, fmt.Errorf("the pod's service account: %w", err)
	}
	for _, path := range kubeletKubeconfigs() {
		if _, err := os.Stat(path); err == nil {
			return loadConfig(path)
		}
	}
	return nil, errors.New("no way to the API server is known: this is no pod with a service account and no " +
		"kubelet kubeconfig was found; name a file with --kubeconfig")
}
