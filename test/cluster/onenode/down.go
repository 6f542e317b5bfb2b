package onenode

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Down ends what Up started, known by its pid files, and takes away its traces:
// pods, mounts, cgroups, sysctls, sockets and the folder of the run. The programs
// that were built stay for another Up. A cluster that is down is no error.
func (c *Cluster) Down(progress io.Writer) error {
	if _, err := os.Stat(c.run()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("the cluster's processes belong to root: run this as root")
	}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	var errs []error
	stop := func(name string) {
		if p, ok := c.process(name); ok && p.end(10*time.Second) {
			fmt.Fprintf(progress, "cluster: %s ignored SIGTERM and was killed\n", name)
		}
		_ = os.Remove(c.pidFile(name))
	}
	stop("kubelet")
	// The saved sysctls tell that this run got as far as a kubelet: without one,
	// pods and cgroups on this machine are someone else's.
	_, err = os.Stat(c.run("tunables"))
	hadKubelet := err == nil
	if hadKubelet {
		killPods()
	}
	for _, name := range []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", "egress", "containerd"} {
		stop(name)
	}
	errs = append(errs, c.killNode())
	for _, name := range []string{"etcd", "journald", "node"} {
		stop(name)
	}
	errs = append(errs, c.unmount())
	if hadKubelet {
		removeCgroups()
	}
	errs = append(errs, c.restoreTunables(), c.removeMade())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_ = os.Remove(c.Kubeconfig())
	return os.RemoveAll(c.run())
}

// killPods kills every process in the pods' cgroups.
func killPods() {
	for _, root := range podCgroups() {
		for range 50 {
			if killCgroup(root) == 0 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func podCgroups() []string {
	v1, _ := filepath.Glob("/sys/fs/cgroup/*/kubepods")
	return append(v1, "/sys/fs/cgroup/kubepods")
}

// killCgroup sends SIGKILL to all processes below a cgroup and counts them.
func killCgroup(root string) (n int) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "cgroup.procs" {
			return nil
		}
		b, _ := os.ReadFile(path)
		for field := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(field); err == nil && pid > 1 {
				n++
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		return nil
	})
	return n
}

// killNode ends whatever else lives in the node's mount namespace: the shims of
// containerd, an agent that a test has left.
func (c *Cluster) killNode() error {
	ns, err := c.MountNamespace()
	if err != nil {
		return nil // no namespace, nobody in it
	}
	ours, err := os.Readlink(ns)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	keep := map[int]bool{}
	for _, name := range []string{"node", "journald"} {
		if p, ok := c.process(name); ok {
			keep[p.pid] = true
		}
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || keep[pid] {
			continue
		}
		if theirs, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid)); err != nil || theirs != ours {
			continue
		}
		if _, start, err := statOf(pid); err == nil {
			process{pid, start}.end(2 * time.Second)
		}
	}
	return nil
}

// unmount takes away mounts below the run folder, the deepest first. There are
// none unless someone made them by hand: the node's own went with its namespace.
func (c *Cluster) unmount() error {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return err
	}
	defer f.Close()
	var below []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) > 1 && strings.HasPrefix(fields[1], c.run()+"/") {
			below = append([]string{fields[1]}, below...)
		}
	}
	for _, path := range below {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	return nil
}

// removeCgroups removes the pods' and the units' empty cgroups. One that is still
// in use stays; it holds nothing but a name.
func removeCgroups() {
	roots := podCgroups()
	for _, name := range []string{"kubelet", "containerd"} {
		if dir, err := unitCgroup(name); err == nil {
			roots = append(roots, dir)
		}
	}
	for _, root := range roots {
		var dirs []string
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append([]string{path}, dirs...)
			}
			return nil
		})
		for _, dir := range dirs {
			_ = os.Remove(dir)
		}
	}
	if slice, err := unitCgroup(""); err == nil {
		_ = os.Remove(filepath.Dir(slice)) // refused unless it is empty
	}
}
