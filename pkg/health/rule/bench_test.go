package rule

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// benchLines is how many lines of the corpus a pass reads.
const benchLines = 1_000_000

// BenchmarkMatcher measures the matcher alone, over text that is already in memory:
// with 10 rules, and with 100.
func BenchmarkMatcher(b *testing.B) {
	lines, size := corpus(benchLines)
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			e, err := New(benchRules(b, n), health.NewCatalog())
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(size)
			start := cpuTime(b)
			defer func() {
				cpu := cpuTime(b) - start
				b.ReportMetric(float64(size)*float64(b.N)/1e6/cpu.Seconds(), "MB/cpu-s")
			}()
			for b.Loop() {
				found := 0
				for _, line := range lines {
					if len(e.Detect(host.Record{Source: host.SourceKmsg, Kernel: true, Message: line})) > 0 {
						found++
					}
				}
				if found != benchLines/10000 {
					b.Fatalf("%d findings, want %d", found, benchLines/10000)
				}
			}
		})
	}
}

// benchRules returns n rules of one source: those of the product, and as many more
// with texts of the same kind as it takes.
func benchRules(b *testing.B, n int) []Rule {
	all, err := Embedded()
	if err != nil {
		b.Fatal(err)
	}
	var out []Rule
	for _, r := range all {
		if r.Source == host.SourceFile || r.Reason == "MonitorBlind" {
			continue // a line of one source is told by one rule
		}
		r.Source, r.Units, r.Paths = host.SourceKmsg, nil, nil
		if r.ID != "soft-lockup" && len(out) < n-1 {
			out = append(out, r)
		} else if r.ID == "soft-lockup" {
			out = append([]Rule{r}, out...)
		}
	}
	for i := len(out); i < n; i++ {
		text := fmt.Sprintf("subsystem%d: controller fault %d on device", i*7919%1000, i*31)
		out = append(out, Rule{
			ID: fmt.Sprint("extra-", i), Source: host.SourceKmsg, Reason: "KernelBug", Message: "x",
			Patterns: []string{`^` + text + ` (?P<device>\w+)`},
			Samples:  Samples{Match: []Sample{{Text: text + " a", Fields: map[string]any{"device": "a"}}}, NoMatch: []string{"x"}},
		})
	}
	return out
}

// cpuTime is the processor time that this process has used: on a machine that others
// use as well, what is said per second of the clock says little.
func cpuTime(b *testing.B) time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		b.Fatal(err)
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// BenchmarkPrefilter measures the pass over the bytes without what surrounds it.
func BenchmarkPrefilter(b *testing.B) {
	lines, size := corpus(benchLines / 10)
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			e, err := New(benchRules(b, n), health.NewCatalog())
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(size)
			for b.Loop() {
				for _, line := range lines {
					e.kernel.prefilter.Find(line, e.kernel.set)
				}
			}
		})
	}
}
