package proc

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// Load is /proc/loadavg.
type Load struct {
	// Avg1 is the load average of the last minute: tasks that run or cannot be
	// interrupted.
	Avg1 float64
	// Threads is the number of threads on the host.
	Threads int
}

// ReadLoad reads the load of the host.
func ReadLoad(h *host.Host) (Load, error) {
	s, err := h.ReadString("/proc/loadavg")
	if err != nil {
		return Load{}, err
	}
	return ParseLoad(s)
}

// ParseLoad parses /proc/loadavg: "0.20 0.18 0.12 1/80 11206".
func ParseLoad(s string) (Load, error) {
	f := strings.Fields(s)
	if len(f) < 4 {
		return Load{}, fmt.Errorf("/proc/loadavg: %q has too few fields", s)
	}
	avg, err := strconv.ParseFloat(f[0], 64)
	if err != nil {
		return Load{}, fmt.Errorf("/proc/loadavg: %w", err)
	}
	_, all, _ := strings.Cut(f[3], "/")
	threads, err := strconv.Atoi(all)
	if err != nil {
		return Load{}, fmt.Errorf("/proc/loadavg: %w", err)
	}
	return Load{Avg1: avg, Threads: threads}, nil
}
