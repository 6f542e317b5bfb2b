package proc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// argsTime is how long reading the arguments of a process may take.
const argsTime = 3 * time.Second

// Args returns the arguments of a process of the host, its name first. To read them
// takes the memory map's lock of the process, which a sick one may hold for ever: then
// Args gives up after three seconds, and leaves the reading to a goroutine that ends
// when the lock is free.
func Args(ctx context.Context, h *host.Host, pid int) ([]string, error) {
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := h.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid), 1<<20)
		done <- result{b, err}
	}()
	timer := time.NewTimer(argsTime)
	defer timer.Stop()
	select {
	case r := <-done:
		return strings.Split(strings.TrimRight(string(r.b), "\x00"), "\x00"), r.err
	case <-timer.C:
		return nil, fmt.Errorf("the arguments of process %d cannot be read", pid)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Flag returns the value of the last of --name value and --name=value among the
// arguments of a process, for any of the names; empty when there is none.
func Flag(args []string, names ...string) string {
	value := ""
	for i, arg := range args {
		for _, name := range names {
			if v, ok := strings.CutPrefix(arg, name+"="); ok {
				value = v
			} else if arg == name && i+1 < len(args) {
				value = args[i+1]
			}
		}
	}
	return value
}
