package collect

import (
	"cmp"
	"context"
	"path"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// process is a process of the host that we look for by name.
type process struct {
	pid  int
	comm string
	argv []string
}

// findProcesses returns the first process with each of the names, by the lowest
// process id. A command line is read only of those: to read one takes the memory
// map's lock of its process, which a sick one may hold for ever. So it is given up
// after a moment.
func findProcesses(ctx context.Context, h *host.Host, names ...string) map[string]process {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	found := make(chan map[string]process, 1)
	go func() { found <- scanProcesses(ctx, h, names) }()
	select {
	case m := <-found:
		return m
	case <-ctx.Done():
		return nil
	}
}

func scanProcesses(ctx context.Context, h *host.Host, names []string) map[string]process {
	out := map[string]process{}
	for _, pid := range pids(h) {
		if ctx.Err() != nil {
			return out
		}
		dir := "/proc/" + strconv.Itoa(pid)
		comm, err := h.ReadString(dir + "/comm")
		if err != nil {
			continue
		}
		for _, name := range names {
			if old, ok := out[name]; comm != name || ok && old.pid < pid {
				continue
			}
			line, err := h.ReadFile(dir+"/cmdline", 1<<20)
			if err != nil || len(line) == 0 {
				continue
			}
			out[name] = process{pid: pid, comm: comm, argv: strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")}
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

// flag returns the value of the last of --name value and --name=value.
func (p process) flag(names ...string) string {
	value := ""
	for i, arg := range p.argv {
		for _, name := range names {
			if v, ok := strings.CutPrefix(arg, name+"="); ok {
				value = v
			} else if arg == name && i+1 < len(p.argv) {
				value = p.argv[i+1]
			}
		}
	}
	return value
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
		config:     p.flag("--config"),
		configDir:  p.flag("--config-dir"),
		kubeconfig: p.flag("--kubeconfig"),
		rootDir:    cmp.Or(p.flag("--root-dir"), "/var/lib/kubelet"),
		endpoint:   p.flag("--container-runtime-endpoint"),
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
	c := containerd{pid: p.pid, config: cmp.Or(p.flag("--config", "-c"), "/etc/containerd/config.toml")}
	text, _ := h.ReadFile(c.config, 1<<20)
	c.address = cmp.Or(p.flag("--address", "-a"), grpcAddress(string(text)), strings.TrimPrefix(k.endpoint, "unix://"))
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
