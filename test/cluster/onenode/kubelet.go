package onenode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tunables are the sysctls that the kubelet sets for itself
// (pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables).
var tunables = [...]string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

func (c *Cluster) startKubelet(ctx context.Context, nodeIP string) error {
	if err := c.saveTunables(); err != nil {
		return err
	}
	etc := func(name string) string { return c.run("node/etc-kubernetes", name) }
	if err := os.MkdirAll(etc("pki"), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"ca.crt", "kubelet-serving.crt", "kubelet-serving.key"} {
		b, err := os.ReadFile(c.pki(name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(etc("pki/"+name), b, 0o600); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(etc("kubelet"), 0o755); err != nil {
		return err
	}
	if err := errors.Join(
		os.WriteFile(etc("resolv.conf"), nil, 0o644),
		writeConfig(etc("kubelet/config.yaml"), "kubelet.yaml", c.values()),
		c.writeKubeconfig(c.run("node/var-lib-kubelet/kubeconfig"), "kubelet"),
	); err != nil {
		return err
	}
	err := c.startUnit("kubelet", c.Bin("kubelet"), "--config=/etc/kubernetes/kubelet/config.yaml",
		"--kubeconfig=/var/lib/kubelet/kubeconfig", "--cert-dir=/var/lib/kubelet/pki",
		"--hostname-override="+NodeName, "--node-ip="+nodeIP)
	if err != nil {
		return err
	}
	err = c.await(ctx, "kubelet", "healthy kubelet", time.Minute, func(ctx context.Context) error {
		return httpOK(ctx, fmt.Sprintf("http://127.0.0.1:%d/healthz", kubeletHealthzPort))
	})
	if err != nil {
		return err
	}
	if err := c.await(ctx, "kubelet", "Ready node", time.Minute, c.nodeReady); err != nil {
		return err
	}
	return c.await(ctx, "kubelet", "log endpoint of the node", time.Minute, func(ctx context.Context) error {
		_, err := c.get(ctx, APIPort, "/api/v1/nodes/"+NodeName+"/proxy/logs/")
		return err
	})
}

// saveTunables notes the sysctls as they were before the first kubelet.
func (c *Cluster) saveTunables() error {
	if _, err := os.Stat(c.run("tunables")); err == nil {
		return nil
	}
	var saved strings.Builder
	for _, name := range tunables {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without this one
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(&saved, "%s=%s\n", name, strings.TrimSpace(string(value)))
	}
	return os.WriteFile(c.run("tunables"), []byte(saved.String()), 0o600)
}

func (c *Cluster) restoreTunables() error {
	b, err := os.ReadFile(c.run("tunables"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		errs = append(errs, os.WriteFile(filepath.Join("/proc/sys", name), []byte(value), 0o644))
	}
	return errors.Join(errs...)
}
