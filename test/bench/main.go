// Command bench prints the numbers that need a cluster: "make bench". It uses the
// one-node cluster of test/cluster, which it brings up, and takes down again, unless
// it is up. Each benchmark is a program in a folder of its own; arguments name those
// to run, and none means all.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/ekslogs/ekslogs/test/cluster/onenode"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) (err error) {
	c, err := onenode.New("")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		mains, err := filepath.Glob(filepath.Join(c.Repo, "test/bench/*/main.go"))
		if err != nil {
			return err
		}
		for _, m := range mains {
			names = append(names, filepath.Base(filepath.Dir(m)))
		}
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "bench: SKIPPED what needs a cluster, which needs root:", names)
		return nil
	}
	usable, err := c.Status(ctx, io.Discard)
	if err != nil {
		return err
	}
	if !usable {
		defer func() { err = errors.Join(err, c.Down(os.Stderr)) }()
		if err := c.Up(ctx, os.Stderr); err != nil {
			return err
		}
	}
	if err := program(ctx, c, c.Bin("kubectl"), "--kubeconfig", c.Kubeconfig(), "apply", "-f", "api/crds"); err != nil {
		return err
	}
	for _, name := range names {
		fmt.Println("==", name)
		if err := program(ctx, c, "go", "run", "./test/bench/"+name); err != nil {
			return err
		}
	}
	return nil
}

func program(ctx context.Context, c *onenode.Cluster, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = c.Repo
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// A Ctrl-C reaches it by itself, and it has to clean up.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	return nil
}
