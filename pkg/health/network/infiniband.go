package network

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// infiniBand finds ports of InfiniBand and RoCE adapters that were active and are not.
type infiniBand struct {
	check.Info
	opts   Options
	active map[string]bool
}

func newInfiniBand(o Options) *infiniBand {
	return &infiniBand{Info: info("infiniband", time.Minute, "InfiniBandPortDown"), opts: o, active: map[string]bool{}}
}

// Run implements check.Check. A port is, for example, "mlx5_0/1".
func (c *infiniBand) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	dirs, err := h.Glob("/sys/class/infiniband/*/ports/*")
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 && len(c.active) == 0 {
		return nil, check.ErrNoData
	}
	ports := map[string]string{}
	for _, dir := range dirs {
		state, err := h.ReadString(dir + "/state")
		if err != nil {
			return nil, err
		}
		ports[path.Base(path.Dir(path.Dir(dir)))+"/"+path.Base(dir)] = state
	}
	return checkPorts(c.opts, c.active, ports), nil
}

// checkPorts notes in active which ports were seen active. States are written as
// "4: ACTIVE".
func checkPorts(o Options, active map[string]bool, ports map[string]string) []health.Finding {
	for port, state := range ports {
		if strings.HasPrefix(state, "4:") {
			active[port] = true
		}
	}
	var out []health.Finding
	for port := range active {
		state, there := ports[port]
		if strings.HasPrefix(state, "4:") {
			continue
		}
		if !there {
			state = "gone"
		}
		f := check.Finding(o.Catalog, "InfiniBandPortDown", port, fmt.Sprintf("The port %s was active and is not any more; collective operations over it fail.", port))
		f.Evidence = fmt.Sprintf("state of %s: %s", port, state)
		f.Fields = map[string]any{"port": port, "state": state}
		out = append(out, f)
	}
	return out
}

// amazonVendor is the PCI vendor of EFA devices.
const amazonVendor = "0x1d0f"

// efa finds Elastic Fabric Adapters that have to send again and again, or whose peers
// do not answer.
type efa struct {
	check.Info
	opts Options
	last map[string]efaSample
	now  func() time.Time
}

type efaSample struct {
	at       time.Time
	counters map[string]uint64
}

// efaLimits are how fast counters may grow, in events (bytes) a second.
func efaLimits() map[string]float64 {
	return map[string]float64{
		"retrans_bytes": 1e6, "retrans_pkts": 1000, "retrans_timeout_events": 100,
		"unresponsive_remote_events": 100, "impaired_remote_conn_events": 100,
	}
}

func newEFA(o Options) *efa {
	return &efa{Info: info("efa", time.Minute, "EFAErrorMetric"), opts: o, now: time.Now}
}

// Run implements check.Check.
func (c *efa) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	dirs, err := h.Glob("/sys/class/infiniband/*")
	if err != nil {
		return nil, err
	}
	now := map[string]efaSample{}
	for _, dir := range dirs {
		if vendor, err := h.ReadString(dir + "/device/vendor"); err != nil || vendor != amazonVendor {
			continue
		}
		s := efaSample{c.now(), map[string]uint64{}}
		for name := range efaLimits() {
			files, err := h.Glob(dir + "/ports/*/hw_counters/" + name)
			if err != nil {
				return nil, err
			}
			for _, file := range append(files, dir+"/hw_counters/"+name) {
				text, err := h.ReadString(file)
				if err != nil {
					continue // an older driver has fewer
				}
				if n, err := strconv.ParseUint(text, 10, 64); err == nil {
					s.counters[name] += n
				}
			}
		}
		now[path.Base(dir)] = s
	}
	if len(now) == 0 {
		c.last = nil
		return nil, check.ErrNoData
	}
	fs := checkEFA(c.opts, c.last, now)
	c.last = now
	return fs, nil
}

// checkEFA compares with the last sample. The first of a device is a baseline, and so
// is one of a counter that fell.
func checkEFA(o Options, last, now map[string]efaSample) []health.Finding {
	var out []health.Finding
	limits := efaLimits()
	for device, n := range now {
		l, ok := last[device]
		seconds := n.at.Sub(l.at).Seconds()
		if !ok || seconds <= 0 {
			continue
		}
		var fast []string
		for name, value := range n.counters {
			before, known := l.counters[name]
			if known && value >= before && float64(value-before)/seconds > limits[name] {
				fast = append(fast, fmt.Sprintf("%s +%d in %.0f s", name, value-before, seconds))
			}
		}
		if len(fast) == 0 {
			continue
		}
		f := check.Finding(o.Catalog, "EFAErrorMetric", device, fmt.Sprintf("The fabric adapter %s sends again too often, or its peers do not answer.", device))
		f.Evidence = strings.Join(fast, ", ")
		f.Fields = map[string]any{"device": device}
		out = append(out, f)
	}
	return out
}
