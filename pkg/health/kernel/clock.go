package kernel

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"golang.org/x/sys/unix"
)

// clockSettles is how long after boot a time service may take to set the clock.
const clockSettles = 10 * time.Minute

// clock finds a node whose clock nothing keeps right: the kernel says so itself, when
// no time service has told it otherwise for some time (STA_UNSYNC, adjtimex(2)).
type clock struct {
	check.Info
	opts   Options
	status func() (int32, error)
}

func newClock(o Options) *clock {
	return &clock{info("clock", 5*time.Minute, "ClockUnsynchronized"), o, readClock}
}

// readClock reads the status of the kernel's clock, and changes nothing.
func readClock() (int32, error) {
	var t unix.Timex // Modes 0: read only
	if _, err := unix.Adjtimex(&t); err != nil {
		return 0, fmt.Errorf("adjtimex: %w", err)
	}
	return t.Status, nil
}

// Run implements check.Check.
func (c *clock) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	s, err := h.ReadString("/proc/uptime")
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(s, " ")
	up, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return nil, fmt.Errorf("/proc/uptime: %w", err)
	}
	if time.Duration(up*float64(time.Second)) < clockSettles {
		return nil, check.ErrNoData
	}
	status, err := c.status()
	if err != nil {
		return nil, err
	}
	return checkClock(c.opts, status), nil
}

func checkClock(o Options, status int32) []health.Finding {
	if status&unix.STA_UNSYNC == 0 {
		return nil
	}
	f := check.Finding(o.Catalog, "ClockUnsynchronized", "",
		"No time service keeps the node's clock right: certificates, tokens and leases fail once it has drifted. Look at chronyd or systemd-timesyncd.")
	f.Evidence = fmt.Sprintf("adjtimex: status %#x has STA_UNSYNC", status)
	return []health.Finding{f}
}
