// Command latency measures the time from a line in the kernel's log to the Node
// condition or the Event that a client of the API server sees by a watch, with an
// agent on the cluster of test/cluster.
//
// What turns the condition is a shut-down filesystem, a Fatal; a person's all-clear
// turns it back. What makes an Event is a bad sector, a Warning. Each line names a
// device that no other does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/ekslogs/ekslogs/test/bench/lab"
)

// retryAfter is how long a line is waited for before it is looked whether the
// kernel has dropped it.
const retryAfter = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "latency:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	flips := flag.Int("flips", 200, "how often the condition is turned")
	events := flag.Int("events", 25, "how many Events; with those that the agent has of its own no more than the agent's burst, or they wait for their turn")
	pause := flag.Duration("pause", 500*time.Millisecond, "time between two lines: without any, the agent's own bound on its requests is what is measured")
	verbose := flag.Bool("v", false, "print each one as it comes")
	flag.Parse()
	l, err := lab.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	machine := lab.Machine()
	a, err := l.Start(ctx, "--trust-userspace-kmsg")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	o, err := newObserver(ctx, l.Client, a.Node)
	if err != nil {
		return err
	}
	defer o.stop()
	if err := o.await(ctx, time.Minute, o.healthy); err != nil {
		return fmt.Errorf("the condition does not become True: %w", err)
	}

	// A nonce keeps the lines of an earlier run, which the kernel's log still holds,
	// from being taken for ours.
	nonce := rand.IntN(1e6)
	var toEvent, toFalse, toTrue []time.Duration
	for i := range *events {
		device := fmt.Sprintf("sd%s", letters(nonce*100+i))
		line := fmt.Sprintf("sd 6:0:0:0: [%s] tag#0 Sense Key : Medium Error [current]", device)
		time.Sleep(*pause)
		d, err := o.tell(ctx, line, func() bool { return o.told(device) })
		if err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
		toEvent = append(toEvent, d)
		if *verbose {
			fmt.Fprintf(os.Stderr, "event %d: %s\n", i+1, d)
		}
	}
	for i := range *flips {
		device := fmt.Sprintf("nvme%dn%d", nonce, i+1)
		line := fmt.Sprintf("XFS (%s): Filesystem has been shut down due to log error (0x2).", device)
		time.Sleep(*pause)
		d, err := o.tell(ctx, line, func() bool { return o.sick(device) })
		if err != nil {
			return fmt.Errorf("flip %d: %w", i+1, err)
		}
		toFalse = append(toFalse, d)
		if *verbose {
			fmt.Fprintf(os.Stderr, "flip %d: %s\n", i+1, d)
		}
		time.Sleep(*pause)
		start := time.Now()
		if err := o.allClear(ctx, "FilesystemShutdown/"+device); err != nil {
			return err
		}
		if err := o.await(ctx, time.Minute, o.healthy); err != nil {
			return fmt.Errorf("flip %d back: %w", i+1, err)
		}
		toTrue = append(toTrue, o.at.Sub(start))
	}
	fmt.Println(machine)
	report("kernel line → Event", toEvent, "p50 at most 100ms, p99 at most 500ms")
	report("kernel line → condition False", toFalse, "p50 at most 100ms, p99 at most 500ms")
	report("all-clear → condition True", toTrue, "no goal")
	if o.dropped > 0 {
		fmt.Printf("%d lines were dropped by the kernel and written again\n", o.dropped)
	}
	return nil
}

// letters is n in the letters that names of SCSI disks are made of.
func letters(n int) string {
	s := ""
	for ; n > 0; n /= 26 {
		s = string(rune('a'+n%26)) + s
	}
	return s
}

func report(what string, d []time.Duration, goal string) {
	if len(d) == 0 {
		return
	}
	slices.Sort(d)
	at := func(q float64) time.Duration {
		return d[min(len(d)-1, int(q*float64(len(d))))].Round(100 * time.Microsecond)
	}
	fmt.Printf("%-30s p50 %-8s p99 %-8s max %-8s of %d (goal: %s)\n", what, at(.5), at(.99), at(1), len(d), goal)
}
