package gpustate

import (
	"slices"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

const (
	// clockWindow is the time over which clock slowdowns are judged, and slowShare the
	// share of samples in it that must show one.
	clockWindow = 10 * time.Minute
	slowShare   = 0.6
	// misconfiguredFor is how long a fabric may say that it is not configured right:
	// while it comes up it does.
	misconfiguredFor = 10 * time.Minute
	// linkDownSamples is in how many samples a link must be down.
	linkDownSamples = 2
)

// Bits of nvmlClocksEventReason* (nvml.h) that the hardware sets by itself.
const (
	clockHWThermalSlowdown    = 0x40
	clockHWPowerBrakeSlowdown = 0x80
)

// History judges samples in a row. It is for one goroutine.
type History struct {
	// Catalog gives the severities.
	Catalog *health.Catalog
	prev    *State
	gpus    map[string]*gpuHistory
}

// gpuHistory is what is remembered of one GPU.
type gpuHistory struct {
	clocks        []clockSample
	misconfigured time.Time
	links         map[int]*linkHistory
}

type clockSample struct {
	at   time.Time
	mask uint64
}

type linkHistory struct {
	wasUp bool
	down  int
}

// Previous returns the last sample, nil before the first.
func (h *History) Previous() *State { return h.prev }

// Observe takes the next sample and returns all that is wrong now.
func (h *History) Observe(now State, want Expected) []health.Finding {
	now.GPUs = slices.Clone(now.GPUs)
	h.identify(now.GPUs)
	found := Judge(h.Catalog, h.prev, now, want)
	j := judge{catalog: h.Catalog, prev: h.prev}
	seen := map[string]*gpuHistory{}
	for _, g := range now.GPUs {
		key := g.Subject()
		gh := h.gpus[key]
		if gh == nil {
			gh = &gpuHistory{links: map[int]*linkHistory{}}
		}
		seen[key] = gh
		gh.clock(&j, g, now.At)
		gh.config(&j, g, now.At)
		gh.link(&j, g)
	}
	h.gpus, h.prev = seen, &now
	return append(found, j.found...)
}

// identify gives GPUs that can no longer tell their names those of the sample before.
// NVML keeps the order of GPUs while the driver is loaded.
func (h *History) identify(gpus []GPU) {
	if h.prev == nil || len(h.prev.GPUs) != len(gpus) {
		return
	}
	for i := range gpus {
		if g, before := &gpus[i], h.prev.GPUs[i]; g.UUID == "" && g.PCI == "" && g.Index == before.Index {
			g.UUID, g.PCI, g.Serial, g.Name = before.UUID, before.PCI, before.Serial, before.Name
		}
	}
}

// clock judges how long the GPU was slowed down in the window.
func (gh *gpuHistory) clock(j *judge, g GPU, at time.Time) {
	if g.ClockReasons == nil {
		return
	}
	gh.clocks = append(gh.clocks, clockSample{at, *g.ClockReasons})
	gh.clocks = slices.DeleteFunc(gh.clocks, func(s clockSample) bool {
		age := at.Sub(s.at)
		return age > clockWindow || age < 0
	})
	// A window that is not yet full says nothing: a job's first minute is not ten.
	if at.Sub(gh.clocks[0].at) < clockWindow*9/10 {
		return
	}
	for _, slow := range []struct {
		bit             uint64
		reason, message string
	}{
		{clockHWPowerBrakeSlowdown, "NvidiaPowerError", "slowed down by the power brake of the hardware"},
		{clockHWThermalSlowdown, "NvidiaThermalError", "slowed down by the hardware because it is too hot"},
	} {
		n := 0
		for _, s := range gh.clocks {
			if s.mask&slow.bit != 0 {
				n++
			}
		}
		if share := float64(n) / float64(len(gh.clocks)); share >= slowShare {
			j.about(slow.reason, g, slow.message, map[string]any{"percent": int64(share * 100)})
		}
	}
}

// config tells a wrong configuration of the fabric that does not pass.
func (gh *gpuHistory) config(j *judge, g GPU, at time.Time) {
	words := g.Fabric.misconfigured()
	switch {
	case words == "":
		gh.misconfigured = time.Time{}
	case gh.misconfigured.IsZero():
		gh.misconfigured = at
	case at.Sub(gh.misconfigured) >= misconfiguredFor:
		j.about("NvidiaFabricError", g, "NVLink fabric: "+words, map[string]any{"cause": "configuration"})
	}
}

// link tells of NVLinks that were up and stay down.
func (gh *gpuHistory) link(j *judge, g GPU) {
	if g.MIG {
		clear(gh.links)
		return
	}
	var down []int
	for number, up := range g.Links {
		l := gh.links[number]
		if l == nil {
			l = &linkHistory{}
			gh.links[number] = l
		}
		if up {
			*l = linkHistory{wasUp: true}
			continue
		}
		l.down++
		if l.wasUp && l.down >= linkDownSamples {
			down = append(down, number)
		}
	}
	if len(down) > 0 {
		slices.Sort(down)
		j.about("NvidiaNVLinkError", g, "NVLink "+join(down)+" was up and is down", map[string]any{"links": int64s(down)})
	}
}
