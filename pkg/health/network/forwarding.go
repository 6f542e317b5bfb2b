package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/kubelet"
)

// forwarding finds a node that does not pass on the packets of its pods.
type forwarding struct {
	check.Info
	opts Options
	pods func(ctx context.Context) (bool, error)
}

func newForwarding(o Options, finder *kubelet.Finder) *forwarding {
	return &forwarding{
		Info: info("ip-forward", 5*time.Minute, "NetworkSysctl"), opts: o,
		pods: func(ctx context.Context) (bool, error) {
			k, err := finder.Find(ctx)
			if err != nil {
				return false, err
			}
			return hasPodNetwork(k.Files), nil
		},
	}
}

// Run implements check.Check. Where pods have no network of their own, there is nothing
// to pass on.
func (c *forwarding) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	pods, err := c.pods(ctx)
	if errors.Is(err, kubelet.ErrAbsent) || err == nil && !pods {
		return nil, check.ErrNoData
	}
	if err != nil {
		return nil, err
	}
	value, err := h.ReadString("/proc/sys/net/ipv4/ip_forward")
	if err != nil {
		return nil, err
	}
	return checkForwarding(c.opts, value), nil
}

func checkForwarding(o Options, value string) []health.Finding {
	if value == "1" {
		return nil
	}
	f := check.Finding(o.Catalog, "NetworkSysctl", "net.ipv4.ip_forward", "The node does not forward packets: pods reach nothing beyond it, and nothing reaches them.")
	f.Evidence = fmt.Sprintf("net.ipv4.ip_forward=%s", value)
	f.Fields = map[string]any{"setting": "net.ipv4.ip_forward", "value": value}
	return []health.Finding{f}
}

// hasPodNetwork reports whether a plugin gives pods a network beyond a loopback
// interface (CNI specification, "Network configuration format").
func hasPodNetwork(files *host.Host) bool {
	type plugin struct {
		Type string `json:"type"`
	}
	entries, err := files.ReadDir("/etc/cni/net.d")
	if err != nil {
		return false
	}
	for _, e := range entries {
		switch path.Ext(e.Name()) {
		case ".conf", ".conflist", ".json":
		default:
			continue
		}
		var conf struct {
			plugin
			Plugins []plugin `json:"plugins"`
		}
		b, err := files.ReadFile("/etc/cni/net.d/"+e.Name(), 1<<20)
		if err != nil || json.Unmarshal(b, &conf) != nil {
			continue
		}
		for _, p := range append(conf.Plugins, conf.plugin) {
			if p.Type != "" && p.Type != "loopback" {
				return true
			}
		}
	}
	return false
}
