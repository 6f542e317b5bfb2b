package collect

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

// process is a process of the host that we look for by name.
type process struct {
	pid  int
	argv []string
}

// findProcesses returns the first process with each of the names, by the lowest
// process id. The arguments are read only of those.
func findProcesses(ctx context.Context, h *host.Host, names ...string) map[string]process {
	first := map[string]int{}
	for _, pid := range pids(h) {
		comm, err := h.ReadString("/proc/" + strconv.Itoa(pid) + "/comm")
		if err != nil || !slices.Contains(names, comm) {
			continue
		}
		if old, ok := first[comm]; !ok || pid < old {
			first[comm] = pid
		}
	}
	out := map[string]process{}
	for name, pid := range first {
		if args, err := proc.Args(ctx, h, pid); err == nil {
			out[name] = process{pid: pid, argv: args}
		}
	}
	return out
}

// pids lists the processes of the host.
func pids(h *host.Host) []int {
	entries, err := h.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, d := range entries {
		if pid, err := strconv.Atoi(d.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

// kubelet says where the host's kubelet has its files.
type kubelet struct {
	argv                                                   []string
	config, configDir, kubeconfig, rootDir, server, caFile string
	endpoint                                               string
}

func readKubelet(h *host.Host, procs map[string]process) kubelet {
	p := procs["kubelet"]
	k := kubelet{
		argv:       p.argv,
		config:     proc.Flag(p.argv, "--config"),
		configDir:  proc.Flag(p.argv, "--config-dir"),
		kubeconfig: proc.Flag(p.argv, "--kubeconfig"),
		rootDir:    cmp.Or(proc.Flag(p.argv, "--root-dir"), "/var/lib/kubelet"),
		endpoint:   proc.Flag(p.argv, "--container-runtime-endpoint"),
	}
	k.config = firstExisting(h, k.config, "/etc/kubernetes/kubelet/config.json", "/etc/kubernetes/kubelet/kubelet-config.json", "/etc/kubernetes/kubelet/config", "/var/lib/kubelet/config.yaml")
	k.kubeconfig = firstExisting(h, k.kubeconfig, "/var/lib/kubelet/kubeconfig", "/etc/kubernetes/kubelet/kubeconfig", "/etc/kubernetes/kubelet.conf")
	if k.configDir == "" {
		k.configDir = "/etc/kubernetes/kubelet/config.json.d"
	}
	var conf struct {
		Endpoint string `json:"containerRuntimeEndpoint"`
	}
	if b, err := h.ReadFile(k.config, 1<<20); err == nil && yaml.Unmarshal(b, &conf) == nil && k.endpoint == "" {
		k.endpoint = conf.Endpoint
	}
	k.server, k.caFile = readKubeconfig(h, k.kubeconfig)
	return k
}

// readKubeconfig returns the API server's URL and its authority's file.
func readKubeconfig(h *host.Host, file string) (server, caFile string) {
	var conf struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CAFile string `json:"certificate-authority"`
			} `json:"cluster"`
		} `json:"clusters"`
	}
	b, err := h.ReadFile(file, 1<<20)
	if err != nil || yaml.Unmarshal(b, &conf) != nil || len(conf.Clusters) == 0 {
		return "", ""
	}
	c := conf.Clusters[0].Cluster
	if c.CAFile != "" && !strings.HasPrefix(c.CAFile, "/") {
		c.CAFile = path.Join(path.Dir(file), c.CAFile)
	}
	return c.Server, c.CAFile
}

// containerd says where the host's containerd listens and has its configuration.
type containerd struct {
	pid             int
	address, config string
}

func readContainerd(h *host.Host, procs map[string]process, k kubelet) containerd {
	p := procs["containerd"]
	c := containerd{pid: p.pid, config: cmp.Or(proc.Flag(p.argv, "--config", "-c"), "/etc/containerd/config.toml")}
	text, _ := h.ReadFile(c.config, 1<<20)
	c.address = cmp.Or(proc.Flag(p.argv, "--address", "-a"), grpcAddress(string(text)), strings.TrimPrefix(k.endpoint, "unix://"))
	if c.address == "" {
		c.address = firstExisting(h, "/run/containerd/containerd.sock")
	}
	c.address = cmp.Or(c.address, "/run/containerd/containerd.sock")
	return c
}

// grpcAddress finds the address in the [grpc] table of containerd's configuration.
func grpcAddress(toml string) string {
	table := ""
	for line := range strings.SplitSeq(toml, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			table = strings.Trim(line, "[] ")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if ok && table == "grpc" && strings.TrimSpace(key) == "address" {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

// firstExisting returns the first of the files that the host has, or the first
// that is not empty.
func firstExisting(h *host.Host, files ...string) string {
	first := ""
	for _, f := range files {
		if f == "" {
			continue
		}
		if h.Exists(f) {
			return f
		}
		first = cmp.Or(first, f)
	}
	return first
}
