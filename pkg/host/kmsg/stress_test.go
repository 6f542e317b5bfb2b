package kmsg

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// TestRealKernelLogMissesNothingOverRestarts writes to the kernel's log while sources
// that go on from each other's checkpoints read it, and compares what they read with
// what a plain reader finds there afterwards: the kernel itself drops writes.
func TestRealKernelLogMissesNothingOverRestarts(t *testing.T) {
	if f, err := os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		t.Skipf("needs a writable %s: %v", path, err)
	} else {
		f.Close()
	}
	h, err := host.New("/")
	if err != nil {
		t.Fatal(err)
	}
	nonce := fmt.Sprintf("ekslogs-stress-%d-%d", os.Getpid(), time.Now().UnixNano())
	const restarts, writes = 20, 25
	checkpoints := memory{}
	got := map[string]int{}
	for i := range restarts {
		s := New(Options{Host: h, Checkpoints: checkpoints})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		last := fmt.Sprintf("%s last of %d;", nonce, i)
		done := make(chan error, 1)
		go func() {
			done <- s.Run(ctx, func(r host.Record) error {
				if text, ok := strings.CutPrefix(r.Message, nonce); ok {
					got[text]++
				}
				if r.Message == last {
					cancel()
				}
				return nil
			})
		}()
		for n := range writes {
			// Some with what makes a record long, in bytes that are escaped.
			writeKmsg(t, fmt.Sprintf("%s %d/%d %s", nonce, i, n, strings.Repeat("\x01", 200*(n%5))))
		}
		for ctx.Err() == nil { // the kernel drops some writes
			writeKmsg(t, last)
			time.Sleep(time.Millisecond)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	there := map[string]int{}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	buf := make([]byte, firstBuffer)
	newest := fmt.Sprintf(" last of %d;", restarts-1)
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EAGAIN {
			break
		}
		if err != nil {
			continue // overrun: what is gone is not compared
		}
		r, err := Parse(buf[:n])
		if err != nil {
			t.Fatal(err)
		}
		// What came after the last source had stopped is nobody's.
		if text, ok := strings.CutPrefix(r.Message, nonce); ok && text != newest {
			there[text]++
		}
	}
	delete(got, newest)
	if len(there) < writes {
		t.Fatalf("only %d different records are in the kernel's log", len(there))
	}
	// What the ring overran before it was read, or between two sources, is not there.
	for _, text := range slices.Sorted(maps.Keys(there)) {
		if got[text] < there[text] {
			t.Errorf("%q is there %d times, and was read %d times", text, there[text], got[text])
		}
	}
}

func writeKmsg(t *testing.T, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// A record without a newline is shown to readers only with the next record.
	if _, err := fmt.Fprintf(f, "<6>%s\n", text); err != nil {
		t.Fatal(err)
	}
}
