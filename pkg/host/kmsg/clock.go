package kmsg

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock turns the kernel's time since boot into wall-clock time. A record that we
// waited for happened now, and tells how far the two clocks are apart at present; a
// record that was already there is dated by its age. The age comes from
// CLOCK_MONOTONIC_RAW, which like the kernel's local clock is neither slewed by NTP
// nor runs while the machine sleeps; "boot time + seconds since boot", as dmesg -T
// has it, is wrong by minutes after weeks.
type clock struct {
	wall   func() time.Time
	uptime func() time.Duration // CLOCK_MONOTONIC_RAW

	// skew is uptime minus the kernel's local clock, as last seen.
	skew time.Duration
}

func newClock() *clock {
	return &clock{wall: time.Now, uptime: func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts); err != nil {
			return 0
		}
		return time.Duration(ts.Nano())
	}}
}

// at returns the wall-clock time of a record, never later than now.
func (c *clock) at(mono time.Duration, waited bool) time.Time {
	now, uptime := c.wall().Round(0), c.uptime()
	if waited {
		c.skew = uptime - mono
		return now
	}
	return now.Add(-max(0, uptime-c.skew-mono))
}
