package command

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// niceness is the agent's: a third of the weight of an ordinary process when the cores
// are busy, which still gets a fault told within a second.
const niceness = 5

// lowerPriority makes this process, and the children it will have, give way to the
// node's workloads: a niceness, and SCHED_BATCH, by which the kernel never interrupts
// another process to run it the moment it wakes up (sched(7)).
//
// Linux keeps both for each thread. Threads to come inherit them from those that start
// them, so that the list is gone through until no thread is left that had not.
func lowerPriority() error {
	done := map[string]bool{}
	for more := true; more; {
		more = false
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range tasks {
			if done[t.Name()] {
				continue
			}
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				return err
			}
			if err := lowerThread(tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("thread %d: %w", tid, err)
			}
			done[t.Name()], more = true, true
		}
	}
	return nil
}

func lowerThread(tid int) error {
	have, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return err
	}
	// Whoever started it may have asked for less still; only root may take that back.
	nice := max(have.Nice, niceness)
	if have.Policy == unix.SCHED_IDLE {
		return nil
	}
	return unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: nice}, 0)
}
