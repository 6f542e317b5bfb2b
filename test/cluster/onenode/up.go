package onenode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// listeners are the ports of each process on 127.0.0.1.
var listeners = [...]struct {
	process string
	ports   []int
}{
	{"etcd", []int{etcdPort, etcdPeerPort}},
	{"kube-apiserver", []int{APIPort}},
	{"kube-controller-manager", []int{controllerPort}},
	{"kube-scheduler", []int{schedulerPort}},
	{"kubelet", []int{kubeletPort, kubeletHealthzPort}},
}

// Up brings the cluster up and returns when its node is Ready and serves its logs:
// minutes when its programs are to be built, seconds otherwise. What runs already
// is left alone. What it does is said on progress, one line a step.
func (c *Cluster) Up(ctx context.Context, progress io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("a kubelet and containerd need root: run this as root")
	}
	if len(c.State) > maxStateDir {
		return fmt.Errorf("the state folder %s is too long for the unix sockets below it: name one of at most %d bytes with --state-dir",
			c.State, maxStateDir)
	}
	// What is started here outlives us and must not keep what our caller has open: a
	// lock of flock(1), say.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return err
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := c.checkPorts(); err != nil {
		return err
	}
	nodeIP, err := nodeAddress()
	if err != nil {
		return err
	}
	say := sayTo(progress)
	for _, dir := range []string{"pids", "logs", "etc", "node"} {
		if err := os.MkdirAll(c.run(dir), 0o755); err != nil {
			return err
		}
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"packages", func() error { return InstallPackages(ctx) }},
		{"programs", func() error { return c.build(ctx, say) }},
		{"certificates", func() error { return c.makePKI(nodeIP) }},
		{"mount namespace", func() error { return c.startNode(ctx) }},
		{"journald", func() error { return c.startJournald(ctx) }},
		{"etcd", func() error { return c.startEtcd(ctx) }},
		{"API server started", func() error { return c.startAPIServer(nodeIP) }},
		{"containerd", func() error { return c.startContainerd(ctx) }},
		{"API server", func() error { return c.awaitAPIServer(ctx) }},
		{"controllers", c.startControllers},
		{"kubelet, node Ready", func() error { return c.startKubelet(ctx, nodeIP) }},
		{"controllers healthy", func() error { return c.awaitControllers(ctx) }},
		{"kubeconfig", func() error { return c.writeKubeconfig(c.Kubeconfig(), "admin") }},
	}
	for _, step := range steps {
		start := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
		say("%-20s %6.2fs", step.what, time.Since(start).Seconds())
	}
	return nil
}

// sayTo returns a function that writes one line of progress.
func sayTo(w io.Writer) func(format string, args ...any) {
	return func(format string, args ...any) { fmt.Fprintf(w, "cluster: "+format+"\n", args...) }
}

// checkPorts refuses to mix with another cluster: its processes would answer our
// health checks, and two kubelets would share the kubepods cgroups.
func (c *Cluster) checkPorts() error {
	for _, l := range listeners {
		if _, ok := c.process(l.process); ok {
			continue
		}
		for _, port := range l.ports {
			listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				return fmt.Errorf("the port of %s is taken by a process that %s did not start (another cluster's?): %w", l.process, c.State, err)
			}
			listener.Close()
		}
	}
	return nil
}

// lock keeps two ups or downs of one state folder apart.
func (c *Cluster) lock() (unlock func(), err error) {
	if err := os.MkdirAll(c.State, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(c.State+"/lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
