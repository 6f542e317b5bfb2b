package collect

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
	"github.com/ekslogs/ekslogs/pkg/host/platform"
)

func kubeletTable() []entry {
	return []entry{
		journal("kubelet/kubelet.log", "kubelet"),
		firstOf(command("kubelet/kubelet_service.txt", "systemctl", "cat", "kubelet", "--no-pager"), files("", unitFiles("kubelet"))).in(laneCommand),
		fileOf("kubelet/config.json", func(e *env) []string { return []string{e.kubelet.config} }),
		globOf("kubelet/config.json.d/", "*", func(e *env) string { return e.kubelet.configDir + "/" }, "*"),
		fileOf("kubelet/kubeconfig.yaml", func(e *env) []string { return []string{e.kubelet.kubeconfig} }),
		function("kubelet/cmdline.txt", "command line of the kubelet's process", kubeletCommand),
		fileOf("kubelet/cpu_manager_state.json", underKubelet("cpu_manager_state")),
		fileOf("kubelet/memory_manager_state.json", underKubelet("memory_manager_state")),
		get("kubelet/healthz.txt", "http://127.0.0.1:10248/healthz"),
		glob("kubelet/credential-providers/", "/etc/eks/image-credential-provider/", "*.json", "*.yaml"),

		journal("nodeadm/nodeadm-boot-hook.log", "nodeadm-boot-hook"),
		journal("nodeadm/nodeadm-config.log", "nodeadm-config"),
		journal("nodeadm/nodeadm-run.log", "nodeadm-run"),
		journal("sandbox-image/sandbox-image-log.txt", "sandbox-image"),
	}
}

func kubeletCommand(_ context.Context, e *env, w io.Writer) error {
	if len(e.kubelet.argv) == 0 {
		return absent("no process kubelet")
	}
	_, err := io.WriteString(w, strings.Join(e.kubelet.argv, "\n")+"\n")
	return err
}

func underKubelet(name string) func(*env) []string {
	return func(e *env) []string { return []string{e.kubelet.rootDir + "/" + name} }
}

// unitFiles names the unit's file and drop-ins wherever systemd looks for them.
func unitFiles(unit string) func(*env) []string {
	return func(e *env) []string {
		var out []string
		for _, dir := range platform.UnitDirs() {
			out = append(out, dir+"/"+unit+".service")
			drop, err := e.host.Glob(dir + "/" + unit + ".service.d/*.conf")
			if err == nil {
				out = append(out, drop...)
			}
		}
		return out
	}
}

// ctr is a command line for containerd's own client, in the kubelet's namespace. A
// socket that nobody serves costs seconds, not minutes.
func (e *env) ctr(args ...string) []string {
	return append([]string{"ctr", "--address", e.ctrd.address, "--connect-timeout", "3s", "--timeout", "8s", "-n", "k8s.io"}, args...)
}

func ctrEntry(path string, args ...string) entry {
	return commandOf(path, func(e *env) []string { return e.ctr(args...) }).asking(containerdSocket).beside()
}

func containerdSocket(e *env) string { return strings.TrimPrefix(e.ctrd.address, "unix://") }

func containerdTable() []entry {
	return []entry{
		journal("containerd/containerd-log.txt", "containerd"),
		commandOf("containerd/containerd-config.txt", func(e *env) []string {
			return []string{"containerd", "--config", e.ctrd.config, "config", "dump"}
		}),
		fileOf("containerd/config.toml", func(e *env) []string { return []string{e.ctrd.config} }),
		glob("containerd/config.d/", "/etc/containerd/", "config.d/*", "certs.d/*/hosts.toml"),
		ctrEntry("containerd/containerd-version.txt", "version"),
		ctrEntry("containerd/containerd-namespaces.txt", "namespaces", "ls"),
		ctrEntry("containerd/containerd-images.txt", "images", "ls"),
		ctrEntry("containerd/containerd-containers.txt", "containers", "ls"),
		ctrEntry("containerd/containerd-tasks.txt", "tasks", "ls"),
		ctrEntry("containerd/containerd-plugins.txt", "plugins", "ls"),
		ctrEntry("containerd/containerd-leases.txt", "leases", "ls"),
		firstOf(command("containerd/containerd_service.txt", "systemctl", "cat", "containerd", "--no-pager"), files("", unitFiles("containerd"))).in(laneCommand),
		stacks(),
		file("containerd/soci-snapshotter/config.toml", "/etc/soci-snapshotter-grpc/config.toml"),
		journal("containerd/soci-snapshotter/soci-snapshotter-log.txt", "soci-snapshotter"),
		command("containerd/soci-snapshotter/soci-snapshotter-status.txt", "systemctl", "status", "soci-snapshotter", "--no-pager").noneOn(4),
	}
}

func criTable() []entry {
	crictl := func(path string, args ...string) entry {
		return commandOf("containerd/crictl/"+path, func(e *env) []string {
			return append([]string{"crictl", "--runtime-endpoint", "unix://" + e.ctrd.address, "--timeout", "8s"}, args...)
		}).asking(containerdSocket).beside()
	}
	return []entry{
		crictl("info.json", "info"),
		crictl("pods.txt", "pods"),
		crictl("ps.txt", "ps", "-a"),
		crictl("images.txt", "images", "--digests"),
		crictl("imagefsinfo.json", "imagefsinfo"),
		crictl("stats.txt", "stats", "-a"),
		crictl("version.txt", "version"),
	}
}

// stacks asks containerd for its goroutines' stacks, which on SIGUSR1 it writes to
// a file in its temporary folder (containerd, cmd/containerd/command/main.go).
func stacks() entry {
	n := entry{path: "containerd/containerd.*.stacks.log", kind: bundle.SourceFile, lane: laneFile, acts: true}
	n.expand = func(ctx context.Context, e *env) ([]entry, error) {
		pid := e.ctrd.pid
		if pid == 0 {
			return nil, absent("no process containerd")
		}
		if !e.samePIDs(pid) {
			return nil, absent("the host's processes are not visible from here (hostPID)")
		}
		name := fmt.Sprintf("containerd.%d.stacks.log", pid)
		path := "/tmp/" + name
		if !e.host.Exists(path) {
			e.litter.add(path) // one that was there before is not ours
		}
		if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
			return nil, fmt.Errorf("signal USR1 to containerd: %w", err)
		}
		if err := waitForFile(ctx, e, path); err != nil {
			return nil, err
		}
		f := file("containerd/"+name, path)
		return []entry{f}, nil
	}
	return n
}

// samePIDs makes sure that a process id read below the root means the same process
// to kill(2).
func (e *env) samePIDs(pid int) bool {
	stat := fmt.Sprintf("/proc/%d/stat", pid)
	theirs, err := e.host.ReadString(stat)
	if err != nil {
		return false
	}
	ours, err := os.ReadFile(stat)
	return err == nil && startOf(theirs) != "" && startOf(theirs) == startOf(string(ours))
}

// startOf is a process's start time, field 22 of /proc/PID/stat (proc(5)).
func startOf(stat string) string {
	f := statFields(stat)
	if len(f) < 20 {
		return ""
	}
	return f[19]
}

// waitForFile waits until the file is there and has stopped growing.
func waitForFile(ctx context.Context, e *env, path string) error {
	size := int64(-1)
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not appear: %w", path, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
		f, err := e.openRegular(path)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		_ = f.Close()
		if err == nil && info.Size() > 0 && info.Size() == size {
			return nil
		}
		if err == nil {
			size = info.Size()
		}
	}
}
