package command

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// lowChild makes the test's program lower its own priority and say how it went.
const lowChild = "NODE_AGENT_TEST_LOW_PRIORITY"

func TestEveryThreadGivesWayToTheWorkloads(t *testing.T) {
	if os.Getenv(lowChild) == "" {
		// What is lowered cannot be raised again: a process of its own.
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestEveryThreadGivesWayToTheWorkloads$", "-test.v")
		cmd.Env = append(os.Environ(), lowChild+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	if err := lowerPriority(); err != nil {
		t.Fatal(err)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil || len(tasks) < 2 {
		t.Fatalf("%d threads, %v", len(tasks), err)
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			t.Fatal(err)
		}
		a, err := unix.SchedGetAttr(tid, 0)
		if err != nil {
			t.Fatal(err)
		}
		if a.Policy != unix.SCHED_BATCH || a.Nice != niceness {
			t.Errorf("thread %d: policy %d, nice %d", tid, a.Policy, a.Nice)
		}
	}
}
