package onenode

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/ekslogs/ekslogs/test/cluster/image"
)

// pauseImage is the sandbox container's image, made of the helper.
const pauseImage = "registry.test/pause:1"

func (c *Cluster) startContainerd(ctx context.Context) error {
	for _, dir := range []string{"node/etc-containerd", "node/etc-cni/net.d"} {
		if err := os.MkdirAll(c.run(dir), 0o755); err != nil {
			return err
		}
	}
	if err := writeConfig(c.run("node/etc-cni/net.d/10-loopback.conflist"), "loopback.conflist", c.values()); err != nil {
		return err
	}
	if err := writeConfig(c.run("node/etc-containerd/config.toml"), "containerd.toml", c.values()); err != nil {
		return err
	}
	if err := c.startUnit("containerd", "containerd", "--config", "/etc/containerd/config.toml"); err != nil {
		return err
	}
	err := c.await(ctx, "containerd", "answering containerd", 30*time.Second, func(ctx context.Context) error {
		return c.ctr(ctx, "version")
	})
	if err != nil {
		return err
	}
	return c.LoadImage(ctx, pauseImage, image.Spec{Binary: c.Bin("helper"), Args: []string{"pause"}})
}

// LoadImage builds an image of one program and gives it to containerd under a name
// with tag, such as "registry.test/node-agent:test". Pods use it with
// imagePullPolicy Never. The name is taken over from an older image.
func (c *Cluster) LoadImage(ctx context.Context, name string, spec image.Spec) error {
	tar, err := os.CreateTemp(c.run(), "image-*.tar")
	if err != nil {
		return err
	}
	defer os.Remove(tar.Name())
	defer tar.Close()
	if err := image.Write(tar, name, spec); err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	return c.ctr(ctx, "images", "import", tar.Name())
}

// ctr runs containerd's own client in the kubelet's containerd namespace.
func (c *Cluster) ctr(ctx context.Context, args ...string) error {
	args = append([]string{"-a", c.containerdSocket(), "-n", "k8s.io"}, args...)
	out, err := exec.CommandContext(ctx, "ctr", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %v: %w: %s", args, err, out)
	}
	return nil
}
