// Command fetch measures "kubectl ekslogs" against a real cluster: how much it adds
// to the time that an agent collects, and what twenty nodes at once cost compared
// with one.
//
// It makes Node objects that point at the kubelet of the node of test/cluster, with
// one stand-in agent each, whose collector sleeps; all of them share that node's
// /var/log/support. Everything is deleted at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/ekslogs/ekslogs/test/cluster/onenode"
	"github.com/ekslogs/ekslogs/test/standin"
)

type bench struct {
	plugin, kubeconfig, support string
	cfg                         *rest.Config
	work                        time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	b := bench{}
	var nodes int
	flag.IntVar(&nodes, "nodes", 20, "how many nodes at once")
	flag.DurationVar(&b.work, "work", 3*time.Second, "how long each agent collects")
	flag.Parse()
	cluster, err := onenode.New("")
	if err != nil {
		return err
	}
	ns, err := cluster.MountNamespace()
	if err != nil {
		return err
	}
	b.kubeconfig = cluster.Kubeconfig()
	// /proc/PID/ns/mnt → /proc/PID/root: the node's files as it sees them.
	b.support = filepath.Join(filepath.Dir(filepath.Dir(ns)), "root/var/log/support")
	remove, err := b.build(ctx, cluster)
	if err != nil {
		return err
	}
	defer remove()
	if b.cfg, err = clientcmd.BuildConfigFromFlags("", b.kubeconfig); err != nil {
		return err
	}
	b.cfg.QPS = -1
	fleet, err := newFleet(ctx, b.cfg, onenode.NodeName, nodes)
	if err != nil {
		return err
	}
	defer fleet.remove()
	stop, err := b.startAgents(ctx, fleet.names)
	if err != nil {
		return err
	}
	defer stop()

	one, err := b.fetch(ctx, fleet.names[:1])
	if err != nil {
		return err
	}
	all, err := b.fetch(ctx, fleet.names)
	if err != nil {
		return err
	}
	over := one - b.work
	fmt.Printf("one node:   %6.2fs with an agent that takes %s: %.2fs beyond it (goal: at most 2s)\n", one.Seconds(), b.work, over.Seconds())
	fmt.Printf("%d nodes:   %6.2fs, %.2f × one node (goal: at most 1.5)\n", nodes, all.Seconds(), all.Seconds()/one.Seconds())
	return nil
}

// build builds the plugin, so that no stale one is measured.
func (b *bench) build(ctx context.Context, cluster *onenode.Cluster) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "ekslogs-bench-")
	if err != nil {
		return nil, err
	}
	b.plugin = filepath.Join(dir, "kubectl-ekslogs")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", b.plugin, "./cmd/kubectl-ekslogs")
	cmd.Dir, cmd.Env = cluster.Repo, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w\n%s", cmd, err, out), os.RemoveAll(dir))
	}
	return func() { _ = os.RemoveAll(dir) }, nil
}

// startAgents runs one agent for each name and returns what ends them.
func (b *bench) startAgents(ctx context.Context, names []string) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	bundle, err := standin.Pack("system/ps.txt", "PID\n1\n", "kernel/dmesg.txt", "all is well\n")
	if err != nil {
		cancel()
		return nil, err
	}
	done := make(chan error, len(names))
	for _, name := range names {
		a := &standin.Agent{Node: name, Dir: b.support, Work: b.work, Bundle: bundle}
		go func() { done <- a.Run(ctx, b.cfg) }()
	}
	return func() {
		cancel()
		for _, name := range names {
			if err := <-done; err != nil {
				fmt.Fprintln(os.Stderr, "agent:", err)
			}
			_ = os.Remove(b.support + "/" + name + "-logs.tar.gz")
		}
	}, nil
}

// fetch runs the plugin and returns how long it took.
func (b *bench) fetch(ctx context.Context, names []string) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "ekslogs-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	args := append([]string{"--kubeconfig", b.kubeconfig, "-d", dir, "-q", "--concurrency", strconv.Itoa(len(names))}, names...)
	cmd := exec.CommandContext(ctx, b.plugin, args...)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return time.Since(start), nil
}
