package collect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

const introspection = "http://127.0.0.1:61679/v1/"

func cniTable() []entry {
	out := []entry{
		glob("cni/", "/etc/cni/net.d/", "*", "*/*"),
		command("cni/plugins.txt", "ls", "-lL", "/opt/cni/bin").noneOn(2),
		function("cni/cni-configuration-variables-containerd.json", "ctr containers info: aws-node", cniVariables),
		get("ipamd/metrics.json", "http://127.0.0.1:61678/metrics"),
		file("ipamd/ipam.json", "/var/run/aws-node/ipam.json"),
		glob("ipamd/aws-node/", "/var/run/aws-node/", "*"),
	}
	out = append(out, podLogs(
		"kube-system_aws-node-*", "kube-system_cni-metrics-helper-*", "kube-system_coredns-*",
		"kube-system_kube-proxy-*", "*_kube-multus-*", "*_multus-*",
	)...)
	for _, what := range []string{"enis", "pods", "networkutils-env-settings", "ipamd-env-settings", "eni-configs"} {
		out = append(out, get("ipamd/"+what+".json", introspection+what))
	}
	return append(out,
		commands("networking/ebpf-data.txt", 5*time.Second, ebpf("loaded-ebpfdata")),
		commands("networking/ebpf-maps-data.txt", 5*time.Second, ebpfMaps("dump-maps")),
		commands("networking/ebpf-cp-maps-data.txt", 5*time.Second, ebpfMaps("dump-cp-maps")),
	)
}

// cniVariables is the environment of the CNI's container, as containerd has it.
func cniVariables(ctx context.Context, e *env, w io.Writer) error {
	if err := cmp.Or(e.runnable("ctr"), e.served(containerdSocket(e))); err != nil {
		return err
	}
	ids, err := e.output(ctx, e.ctr("containers", "ls", "-q", `labels."io.kubernetes.container.name"==aws-node`)...)
	if err != nil {
		return err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(ids), "\n")
	if id == "" {
		return absent("containerd has no container aws-node")
	}
	info, err := e.output(ctx, e.ctr("containers", "info", id)...)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, info)
	return err
}

// Tools of the network policy agent for its eBPF programs, for IPv4 and IPv6.
var ebpfTools = []string{"/opt/cni/bin/aws-eks-na-cli", "/opt/cni/bin/aws-eks-na-cli-v6"}

func ebpf(args ...string) func(context.Context, *env) ([][]string, error) {
	return func(context.Context, *env) ([][]string, error) {
		var plan [][]string
		for _, tool := range ebpfTools {
			plan = append(plan, append([]string{tool, "ebpf"}, args...))
		}
		return plan, nil
	}
}

// ebpfMaps dumps each map that the tool names.
func ebpfMaps(verb string) func(context.Context, *env) ([][]string, error) {
	return func(ctx context.Context, e *env) ([][]string, error) {
		var plan [][]string
		var failed error
		for _, tool := range ebpfTools {
			text, err := e.output(ctx, tool, "ebpf", "loaded-ebpfdata")
			if err != nil {
				if failed == nil || isAbsent(failed) {
					failed = err
				}
				continue
			}
			seen := map[string]bool{}
			for line := range strings.Lines(text) {
				_, id, ok := strings.Cut(line, "Map ID:")
				if id = strings.TrimSpace(id); ok && id != "" && !seen[id] && len(seen) < 200 {
					seen[id] = true
					plan = append(plan, []string{tool, "ebpf", verb, id})
				}
			}
		}
		if len(plan) == 0 {
			if failed != nil {
				return nil, failed
			}
			return nil, absent("no eBPF maps are loaded")
		}
		return plan, nil
	}
}

// nftTables expands to one file for each table of nftables, so that a large one
// does not push the others over the bound.
func nftTables() entry {
	n := entry{path: "networking/nftables-*.txt", kind: bundle.SourceCommand, acts: true}
	n.expand = func(ctx context.Context, e *env) ([]entry, error) {
		text, err := e.output(ctx, "nft", "list", "tables")
		if err != nil {
			return nil, err
		}
		var out []entry
		for line := range strings.Lines(text) {
			f := strings.Fields(line)
			if len(f) == 3 && f[0] == "table" {
				path := fmt.Sprintf("networking/nftables-%s-%s.txt", f[1], strings.ReplaceAll(f[2], "/", "_"))
				out = append(out, command(path, "nft", "list", "table", f[1], f[2]).max(32<<20))
			}
		}
		if len(out) == 0 {
			return nil, absent("nftables has no tables")
		}
		return out, nil
	}
	return n
}
