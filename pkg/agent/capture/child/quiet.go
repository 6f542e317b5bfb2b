package child

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// From include/uapi/linux/ioprio.h.
const (
	ioprioWhoPgrp    = 2
	ioprioClassShift = 13
	ioprioClassIdle  = 3
)

// Quieten makes the calling process, which must lead its process group as the
// children of Run do, the last to be served and the first to go: nice 19, I/O class
// idle, and the first choice when memory runs out. What it starts inherits that.
// An error names what could not be set; the rest is set all the same.
func Quieten() error {
	var errs []error
	// By group, since setpriority(2) and ioprio_set(2) for one's own process reach
	// the calling thread only, and Go has several by now.
	if err := unix.Setpriority(unix.PRIO_PGRP, 0, 19); err != nil {
		errs = append(errs, fmt.Errorf("nice 19: %w", err))
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoPgrp, 0, ioprioClassIdle<<ioprioClassShift); errno != 0 {
		errs = append(errs, fmt.Errorf("idle I/O class: %w", errno))
	}
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		errs = append(errs, fmt.Errorf("oom_score_adj: %w", err))
	}
	return errors.Join(errs...)
}
