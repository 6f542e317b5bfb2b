package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ekslogs/ekslogs/test/bench/lab"
)

const (
	window = 10 * time.Millisecond
	// late is how much longer than a window one may be that still counts as one.
	late = 2 * time.Millisecond
)

// measured is what a process took.
type measured struct {
	lasting, cpu time.Duration
	windows      []time.Duration // CPU time in each window, sorted
	missed       int             // windows that came late: left out
	switches     lab.Switches
	ran, waited  time.Duration
	memory       lab.Memory
	children     []lab.Memory
}

// measure watches a process and its children for a while.
func measure(ctx context.Context, pid int, lasting time.Duration) (_ *measured, err error) {
	pids, err := lab.Tree(pid)
	if err != nil {
		return nil, err
	}
	g, err := newCgroup(pids)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := g.close(); err == nil {
			err = closeErr
		}
	}()
	before, err := lab.ReadSwitches(pid)
	if err != nil {
		return nil, err
	}
	schedBefore, err := lab.ReadSched(pid)
	if err != nil {
		return nil, err
	}
	m := &measured{}
	if err := m.sample(ctx, g, lasting); err != nil {
		return nil, err
	}
	after, err := lab.ReadSwitches(pid)
	if err != nil {
		return nil, err
	}
	schedAfter, err := lab.ReadSched(pid)
	if err != nil {
		return nil, err
	}
	m.switches = after.Since(before)
	m.ran, m.waited = schedAfter.Ran-schedBefore.Ran, schedAfter.Waited-schedBefore.Waited
	if pids, err = lab.Tree(pid); err != nil {
		return nil, err
	}
	for i, p := range pids {
		mem, err := lab.ReadMemory(p)
		if err != nil && i > 0 {
			continue // a child that is gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			m.memory = mem
		} else {
			m.children = append(m.children, mem)
		}
	}
	return m, nil
}

// sample reads the CPU time each 10 ms.
func (m *measured) sample(ctx context.Context, g *cgroup, lasting time.Duration) error {
	tick := time.NewTicker(window)
	defer tick.Stop()
	start := time.Now()
	first, err := g.used()
	if err != nil {
		return err
	}
	at, used := start, first
	for at.Sub(start) < lasting {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now := time.Now()
		u, err := g.used()
		if err != nil {
			return err
		}
		if now.Sub(at) <= window+late {
			m.windows = append(m.windows, u-used)
		} else {
			m.missed++
		}
		at, used = now, u
	}
	m.lasting, m.cpu = at.Sub(start), used-first
	slices.Sort(m.windows)
	return nil
}

// report prints each number with its goal.
func (m *measured) report(w io.Writer) {
	seconds := m.lasting.Seconds()
	fmt.Fprintf(w, "CPU              %.4f %% of a core, children included (goal: at most 0.02)\n", 100*m.cpu.Seconds()/seconds)
	if n := len(m.windows); n > 0 {
		fmt.Fprintf(w, "CPU in any 10 ms max %.2f ms, p99.9 %.2f ms of %d windows, %d that came late left out (goal: at most 4 and 1)\n",
			ms(m.windows[n-1]), ms(m.windows[min(n-1, n*999/1000)]), n, m.missed)
	}
	fmt.Fprintf(w, "switches         %.2f/s: %.2f waits, %.2f by force (goal: at most 1)\n",
		float64(m.switches.Waits+m.switches.Forced)/seconds, float64(m.switches.Waits)/seconds, float64(m.switches.Forced)/seconds)
	fmt.Fprintf(w, "run queue        waited %.1f ms for a processor to run %.1f ms\n", ms(m.waited), ms(m.ran))
	fmt.Fprintf(w, "RSS              %.1f MiB (goal: at most 32), of it anonymous %.1f MiB (goal: at most 14)\n", mib(m.memory.RSS), mib(m.memory.Anonymous))
	var pss int64
	for _, c := range m.children {
		pss += c.PSS
	}
	fmt.Fprintf(w, "children         %d, PSS %.1f MiB (goal: at most 16)\n", len(m.children), mib(pss))
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

func mib(n int64) float64 { return float64(n) / (1 << 20) }
