//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ekslogs/ekslogs/test/cluster/image"
	"github.com/ekslogs/ekslogs/test/cluster/onenode"
)

// agentImage is node-agent as built from this tree. No registry has it.
const agentImage = "registry.test/node-agent:e2e"

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run sees to a cluster with our API and our programs, and runs the tests.
func run(m *testing.M) (code int, err error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("these tests run a kubelet and containerd: run them as root")
	}
	ctx := context.Background()
	c, err := onenode.New("")
	if err != nil {
		return 0, err
	}
	usable, err := c.Status(ctx, io.Discard)
	if err != nil {
		return 0, err
	}
	if !usable {
		// One that is there and only not in order stays: somebody has brought it up.
		if _, err := os.Stat(c.Kubeconfig()); errors.Is(err, fs.ErrNotExist) {
			defer func() { err = errors.Join(err, c.Down(os.Stderr)) }()
		}
		if err := c.Up(ctx, os.Stderr); err != nil {
			return 0, err
		}
	}
	if err := build(ctx, c); err != nil {
		return 0, err
	}
	if err := c.LoadImage(ctx, agentImage, image.Spec{Binary: program(c, "node-agent")}); err != nil {
		return 0, err
	}
	crds := exec.CommandContext(ctx, c.Bin("kubectl"), "--kubeconfig", c.Kubeconfig(), "apply", "-f", filepath.Join(c.Repo, "api/crds"))
	if out, err := crds.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return m.Run(), nil
}

// build builds all programs, so that no stale one is tested.
func build(ctx context.Context, c *onenode.Cluster) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", program(c, "")+"/", "./cmd/...")
	cmd.Dir = c.Repo
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build ./cmd/...: %w\n%s", err, out.Bytes())
	}
	return nil
}

// program is the path of one of our programs.
func program(c *onenode.Cluster, name string) string {
	return filepath.Join(c.State, "e2e", name)
}
