package onenode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// overlay is a folder of the node that lies over one of the machine.
type overlay struct{ from, over string }

// overlays are the folders that a node changes. The paths are those of an EKS node
// image, so that an agent finds everything where it looks for it.
func (c *Cluster) overlays() []overlay {
	node := func(name string) string { return c.run("node", name) }
	return []overlay{
		{node("var-log"), "/var/log"},
		{node("var-lib-kubelet"), "/var/lib/kubelet"},
		{node("var-lib-containerd"), "/var/lib/containerd"},
		{node("var-lib-node-agent"), "/var/lib/node-agent"},
		{node("run-containerd"), "/run/containerd"},
		{node("run-netns"), "/run/netns"},
		{node("etc-kubernetes"), "/etc/kubernetes"},
		{node("etc-containerd"), "/etc/containerd"},
		{node("etc-cni"), "/etc/cni"},
	}
}

// machineJournal is where journald keeps a persistent journal.
const machineJournal = "/var/log/journal"

// MountNamespace is the path of the node's mount namespace, for nsenter --mount=.
func (c *Cluster) MountNamespace() (string, error) {
	holder, ok := c.process("node")
	if !ok {
		return "", errors.New("the cluster is down: start it with 'go run ./test/cluster up'")
	}
	return fmt.Sprintf("/proc/%d/ns/mnt", holder.pid), nil
}

// Enter returns a command that runs inside the node's mount namespace as a process
// of the node would.
func (c *Cluster) Enter(ctx context.Context, argv ...string) (*exec.Cmd, error) {
	ns, err := c.MountNamespace()
	if err != nil {
		return nil, err
	}
	args := append([]string{"--mount=" + ns, "--wd=/", "--"}, argv...)
	return exec.CommandContext(ctx, "nsenter", args...), nil
}

// startNode makes the node's mount namespace: a process that sleeps holds it.
func (c *Cluster) startNode(ctx context.Context) error {
	script := []string{"set -e", "mount --make-rshared /"}
	if _, err := os.Stat(machineJournal); err == nil && journalServed(ctx) {
		// Where a systemd serves the journal, the node's journal is the machine's.
		over := c.run("node", "var-log", "journal")
		if err := os.MkdirAll(over, 0o755); err != nil {
			return err
		}
		script = append(script, fmt.Sprintf("mount --bind %s %s", machineJournal, shellQuote(over)))
	}
	for _, o := range c.overlays() {
		if err := os.MkdirAll(o.from, 0o755); err != nil {
			return err
		}
		if err := c.makeDir(o.over); err != nil {
			return err
		}
		script = append(script, fmt.Sprintf("mount --rbind %s %s", shellQuote(o.from), o.over))
	}
	ready := c.run("node", "ready")
	script = append(script, "touch "+shellQuote(ready), "exec sleep infinity")
	if _, ok := c.process("node"); !ok {
		_ = os.Remove(ready)
	}
	// With Unshareflags the runtime makes every mount private first, so nothing of
	// this reaches the machine.
	attr := &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	if err := c.start("node", attr, "sh", "-c", strings.Join(script, "\n")); err != nil {
		return err
	}
	return c.await(ctx, "node", "mount namespace", 10*time.Second, func(context.Context) error {
		_, err := os.Stat(ready)
		return err
	})
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// startInNode starts a program inside the node.
func (c *Cluster) startInNode(name string, attr *syscall.SysProcAttr, argv ...string) error {
	ns, err := c.MountNamespace()
	if err != nil {
		return err
	}
	return c.start(name, attr, append([]string{"nsenter", "--mount=" + ns, "--wd=/", "--"}, argv...)...)
}

// startUnit starts a program inside the node as systemd would start NAME.service:
// in a cgroup of this name, which is where journald takes _SYSTEMD_UNIT from, and
// with its output connected to the journal.
func (c *Cluster) startUnit(name string, argv ...string) error {
	dir, err := unitCgroup(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cgroup, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer cgroup.Close()
	attr := &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(cgroup.Fd())}
	return c.startInNode(name, attr, append([]string{"systemd-cat", "-t", name, "--"}, argv...)...)
}

// unitCgroup is the cgroup v2 folder of a unit. On a machine with the hybrid
// layout cgroup v2 is mounted below the v1 controllers, without any of its own.
func unitCgroup(name string) (string, error) {
	for _, root := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err == nil {
			return filepath.Join(root, "system.slice", name+".service"), nil
		}
	}
	return "", errors.New("no cgroup v2 is mounted at /sys/fs/cgroup: the journal could not name a unit")
}
