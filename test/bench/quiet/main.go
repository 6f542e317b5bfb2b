// Command quiet measures what a process that should not be noticed takes from the
// node: CPU time on average and in any 10 ms, context switches and memory, its
// children included.
//
// Without -pid it measures "node-agent run" on the cluster of test/cluster. With -pid
// it measures any process, so that others can be compared with the same ruler.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/test/bench/lab"
)

type options struct {
	pid           int
	lasting, wait time.Duration
	metrics       string
}

func main() {
	var o options
	flag.IntVar(&o.pid, "pid", 0, "the process to measure (default: a node-agent that is started for it)")
	flag.DurationVar(&o.lasting, "for", time.Minute, "how long to measure")
	flag.DurationVar(&o.wait, "settle", 45*time.Second, "how long the agent that is started runs before")
	flag.StringVar(&o.metrics, "metrics", "", "address that serves the process's /metrics, for the live heap")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quiet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	machine := lab.Machine()
	if o.pid == 0 {
		l, err := lab.New(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		a, err := l.Start(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, a.Stop()) }()
		o.pid, o.metrics = a.PID, a.Address
		if err := sleep(ctx, o.wait); err != nil {
			return err
		}
	}
	// Whoever measures windows of 10 ms must not wait for a processor.
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, -20); err != nil {
		fmt.Fprintln(os.Stderr, "quiet: windows may come late:", err)
	}
	m, err := measure(ctx, o.pid, o.lasting)
	if err != nil {
		return err
	}
	fmt.Printf("%s; pid %d for %s\n", machine, o.pid, m.lasting.Round(time.Second))
	m.report(os.Stdout)
	if o.metrics != "" {
		live, err := liveHeap(ctx, o.metrics)
		if err != nil {
			return err
		}
		fmt.Printf("live heap        %.1f MiB (goal: at most 6)\n", live/(1<<20))
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// liveHeap is what the last garbage collection has left, by the Go runtime's word.
func liveHeap(ctx context.Context, address string) (float64, error) {
	const name = "go_gc_heap_live_bytes "
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		if value, is := strings.CutPrefix(line, name); is {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("%s serves no %s", address, strings.TrimSpace(name))
}
