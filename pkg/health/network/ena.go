package network

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/safchain/ethtool"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// enaWindow is the time that the limits are for.
const enaWindow = 10 * time.Minute

// ena finds instances that the network holds back: the driver of the Elastic Network
// Adapter counts packets that were queued or dropped because the instance may not have
// more (Amazon EC2 User Guide, "Monitor network performance").
type ena struct {
	check.Info
	opts Options
	last map[string]enaSample
	read func(h *host.Host) (map[string]enaSample, error)
}

type enaSample struct {
	at       time.Time
	counters map[string]uint64
}

// allowance is a counter of the driver, and what it is worth.
type allowance struct {
	counter, reason, what string
	limit                 uint64 // events in ten minutes
}

func allowances() []allowance {
	return []allowance{
		{"bw_in_allowance_exceeded", "BandwidthInExceeded", "incoming bandwidth", 180},
		{"bw_out_allowance_exceeded", "BandwidthOutExceeded", "outgoing bandwidth", 100},
		{"conntrack_allowance_exceeded", "ConntrackExceeded", "tracked connections", 100},
		{"linklocal_allowance_exceeded", "LinkLocalExceeded", "packets to the services of the instance (DNS, metadata, time)", 100},
		{"pps_allowance_exceeded", "PPSExceeded", "packets per second", 320},
	}
}

func newENA(o Options) *ena {
	var reasons []string
	for _, a := range allowances() {
		reasons = append(reasons, a.reason)
	}
	return &ena{Info: info("ena", 5*time.Minute, reasons...), opts: o, read: readENA}
}

// Run implements check.Check.
func (c *ena) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	now, err := c.read(h)
	if err != nil {
		return nil, err
	}
	if len(now) == 0 {
		c.last = nil
		return nil, check.ErrNoData
	}
	fs := checkENA(c.opts, c.last, now)
	c.last = now
	return fs, nil
}

// checkENA compares with the last sample. The first of an interface is a baseline, and
// so is one of a counter that fell.
func checkENA(o Options, last, now map[string]enaSample) []health.Finding {
	var out []health.Finding
	for name, n := range now {
		l, ok := last[name]
		window := n.at.Sub(l.at)
		if !ok || window <= 0 {
			continue
		}
		for _, a := range allowances() {
			before, known := l.counters[a.counter]
			value, there := n.counters[a.counter]
			if !known || !there || value < before {
				continue
			}
			rise := value - before
			if float64(rise) <= float64(a.limit)*float64(window)/float64(enaWindow) {
				continue
			}
			f := check.Finding(o.Catalog, a.reason, name, fmt.Sprintf("%s exceeds what the instance type may have: %s.", name, a.what))
			f.Evidence = fmt.Sprintf("%s of %s rose by %d in %s", a.counter, name, rise, window.Round(time.Second))
			f.Fields = map[string]any{"iface": name, "counter": a.counter, "delta": int64(rise), "window_s": int64(window.Round(time.Second) / time.Second)}
			out = append(out, f)
		}
	}
	return out
}

func readENA(h *host.Host) (map[string]enaSample, error) {
	drivers, err := h.Glob("/sys/bus/pci/drivers/ena/*/net/*")
	if err != nil || len(drivers) == 0 || !sameMachine(h) {
		return nil, err
	}
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return nil, fmt.Errorf("ethtool: %w", err)
	}
	defer tool.Close()
	out := map[string]enaSample{}
	var errs []error
	for _, dir := range drivers {
		name := path.Base(dir)
		stats, err := tool.Stats(name)
		if err != nil {
			errs = append(errs, fmt.Errorf("ethtool: statistics of %s: %w", name, err))
			continue
		}
		kept := map[string]uint64{}
		for _, a := range allowances() {
			if v, ok := stats[a.counter]; ok {
				kept[a.counter] = v
			}
		}
		out[name] = enaSample{time.Now(), kept}
	}
	return out, errors.Join(errs...)
}
