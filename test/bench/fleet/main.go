// Command fleet measures "kubectl health" against a cluster of thousands of nodes: the
// time and memory of "nodes summary" beside those of "kubectl get nodes -o json", and
// what "--watch" costs while nodes change. It fills the cluster with Node objects of
// realistic size and with Events, and takes all of them away in the end.
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
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/ekslogs/ekslogs/test/cluster/onenode"
)

// What "kubectl health" promises.
const (
	maxRatio = 0.5
	maxRSS   = 150 << 10 // KiB
	maxCPU   = 50 * time.Millisecond
)

type bench struct {
	kubeconfig, kubectl, plugin string
	nodes, events, runs         int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	c, err := onenode.New("")
	if err != nil {
		return err
	}
	b := bench{kubectl: c.Bin("kubectl")}
	flag.StringVar(&b.kubeconfig, "kubeconfig", c.Kubeconfig(), "how to reach the cluster, as its administrator")
	flag.IntVar(&b.nodes, "nodes", 5000, "how many nodes")
	flag.IntVar(&b.events, "events", 50_000, "how many Events")
	flag.IntVar(&b.runs, "runs", 3, "how often each command runs; the median counts")
	flag.Parse()
	if _, err := os.Stat(b.kubectl); err != nil {
		b.kubectl = "kubectl"
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-fleet-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b.plugin = filepath.Join(dir, "kubectl-health")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.plugin, "./cmd/kubectl-health")
	build.Dir, build.Env = c.Repo, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	f, err := newFiller(cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.remove()) }()
	begun := time.Now()
	if err := f.fill(ctx, b.nodes, b.events); err != nil {
		return err
	}
	fmt.Printf("filled with %d nodes and %d Events in %.0f s\n", b.nodes, b.events, time.Since(begun).Seconds())
	if err := b.compare(ctx); err != nil {
		return err
	}
	return b.watch(ctx, f)
}

// compare runs both commands in turn, so that what else the machine does falls on both.
func (b *bench) compare(ctx context.Context) error {
	var theirs, ours []sample
	for range b.runs {
		s, err := measure(ctx, b.kubectl, "--kubeconfig", b.kubeconfig, "get", "nodes", "-o", "json")
		if err != nil {
			return err
		}
		theirs = append(theirs, s)
		if s, err = measure(ctx, b.plugin, "--kubeconfig", b.kubeconfig, "nodes", "summary"); err != nil {
			return err
		}
		ours = append(ours, s)
	}
	k, h := median(theirs), median(ours)
	fmt.Printf("%-32s %8.2f s  %7.2f s CPU  %6.1f MiB\n", "kubectl get nodes -o json", k.wall.Seconds(), k.cpu.Seconds(), float64(k.rss)/1024)
	fmt.Printf("%-32s %8.2f s  %7.2f s CPU  %6.1f MiB\n", "kubectl health nodes summary", h.wall.Seconds(), h.cpu.Seconds(), float64(h.rss)/1024)
	ratio := h.wall.Seconds() / k.wall.Seconds()
	b.judge("time, of kubectl's", fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.2f", maxRatio), ratio <= maxRatio)
	b.judge("memory", fmt.Sprintf("%.1f MiB", float64(h.rss)/1024), fmt.Sprintf("%d MiB", maxRSS>>10), h.rss <= maxRSS)
	return nil
}

// judge prints a number beside its goal. Machines are noisy: a goal that is missed is
// for a person to look at, and ends nothing.
func (b *bench) judge(what, got, limit string, ok bool) {
	verdict := "ok"
	if !ok {
		verdict = "NOT MET"
	}
	fmt.Printf("%-32s %10s  (at most %s)  %s\n", what, got, limit, verdict)
}

func median(s []sample) sample {
	slices.SortFunc(s, func(a, b sample) int { return int(a.wall - b.wall) })
	return s[len(s)/2]
}
