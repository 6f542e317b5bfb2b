package onenode

import (
	"context"
	"fmt"
	"net"
	"time"
)

// nodeAddress is the address that the node is registered under: the kubelet
// refuses a loopback one, and the API server refuses to proxy to one. Nothing
// listens on it: see the helper's egress proxy.
func nodeAddress() (string, error) {
	// Connecting a UDP socket asks the routing table and sends nothing.
	if conn, err := net.Dial("udp4", "192.0.2.255:9"); err == nil {
		defer conn.Close()
		if ip := conn.LocalAddr().(*net.UDPAddr).IP; !ip.IsLoopback() {
			return ip.String(), nil
		}
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String(), nil
		}
	}
	return "", fmt.Errorf("this machine has no IPv4 address but loopback: a kubelet cannot register there")
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	if err := writeConfig(c.run("etc/etcd.yaml"), "etcd.yaml", c.values()); err != nil {
		return err
	}
	if err := c.start("etcd", nil, c.Bin("etcd"), "--config-file", c.run("etc/etcd.yaml")); err != nil {
		return err
	}
	return c.await(ctx, "etcd", "healthy etcd", 30*time.Second, func(ctx context.Context) error {
		return httpOK(ctx, fmt.Sprintf("http://127.0.0.1:%d/health", etcdPort))
	})
}

// startAPIServer starts the API server and the proxy through which it reaches the
// node. Await it with awaitAPIServer.
func (c *Cluster) startAPIServer(nodeIP string) error {
	if err := writeConfig(c.run("etc/egress.yaml"), "egress.yaml", c.values()); err != nil {
		return err
	}
	if err := c.start("egress", nil, c.Bin("helper"), "egress", c.run("egress.sock"), nodeIP); err != nil {
		return err
	}
	return c.start("kube-apiserver", nil, c.Bin("kube-apiserver"),
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcdPort),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", APIPort),
		"--advertise-address="+nodeIP, "--endpoint-reconciler-type=none",
		"--service-cluster-ip-range="+serviceClusterRange,
		"--client-ca-file="+c.pki("ca.crt"),
		"--tls-cert-file="+c.pki("apiserver.crt"), "--tls-private-key-file="+c.pki("apiserver.key"),
		"--kubelet-certificate-authority="+c.pki("ca.crt"),
		"--kubelet-client-certificate="+c.pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key="+c.pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--egress-selector-config-file="+c.run("etc/egress.yaml"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.pki("sa.pub"), "--service-account-signing-key-file="+c.pki("sa.key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true", "--profiling=false")
}

func (c *Cluster) awaitAPIServer(ctx context.Context) error {
	return c.await(ctx, "kube-apiserver", "ready API server", time.Minute, func(ctx context.Context) error {
		_, err := c.get(ctx, APIPort, "/readyz")
		return err
	})
}

// awaitControllers catches a controller that gives up after its start.
func (c *Cluster) awaitControllers(ctx context.Context) error {
	for name, port := range map[string]int{"kube-controller-manager": controllerPort, "kube-scheduler": schedulerPort} {
		err := c.await(ctx, name, "healthy "+name, time.Minute, func(ctx context.Context) error {
			_, err := c.get(ctx, port, "/healthz")
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// startControllers starts the controller manager and the scheduler.
func (c *Cluster) startControllers() error {
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		if err := c.writeKubeconfig(c.run("etc", name+".kubeconfig"), name); err != nil {
			return err
		}
	}
	err := c.start("kube-controller-manager", nil, c.Bin("kube-controller-manager"),
		"--kubeconfig="+c.run("etc/kube-controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", controllerPort), "--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+c.pki("sa.key"), "--root-ca-file="+c.pki("ca.crt"),
		"--cluster-signing-cert-file="+c.pki("ca.crt"), "--cluster-signing-key-file="+c.pki("ca.key"),
		"--authentication-skip-lookup", "--profiling=false")
	if err != nil {
		return err
	}
	return c.start("kube-scheduler", nil, c.Bin("kube-scheduler"),
		"--kubeconfig="+c.run("etc/kube-scheduler.kubeconfig"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", schedulerPort), "--leader-elect=false",
		"--authentication-skip-lookup", "--profiling=false")
}
