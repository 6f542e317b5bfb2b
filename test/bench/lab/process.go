package lab

import (
	"fmt"
	"time"

	"github.com/prometheus/procfs"
)

// Memory is what a process holds, in bytes, from /proc/PID/smaps_rollup.
type Memory struct {
	RSS, PSS, Anonymous int64
}

// ReadMemory reads the memory of a process.
func ReadMemory(pid int) (Memory, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Memory{}, err
	}
	r, err := p.ProcSMapsRollup()
	if err != nil {
		return Memory{}, err
	}
	return Memory{RSS: int64(r.Rss), PSS: int64(r.Pss), Anonymous: int64(r.Anonymous)}, nil
}

// Tree is a process and all its descendants, the process itself first.
func Tree(pid int) ([]int, error) {
	tree := []int{pid}
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	parent := map[int]int{}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil { // else it is gone
			parent[p.PID] = stat.PPID
		}
	}
	if _, ok := parent[pid]; !ok {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	for i := 0; i < len(tree); i++ {
		for child, of := range parent {
			if of == tree[i] {
				tree = append(tree, child)
			}
		}
	}
	return tree, nil
}

// Switches counts context switches of each thread, by its id.
type Switches struct {
	// Waits are those of a thread that had to wait, Forced those to make room.
	Waits, Forced uint64

	threads map[int]procfs.ProcStatus
}

// ReadSwitches reads the context switches of all threads of a process.
func ReadSwitches(pid int) (Switches, error) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return Switches{}, err
	}
	s := Switches{threads: map[int]procfs.ProcStatus{}}
	for _, t := range threads {
		status, err := t.NewStatus()
		if err != nil {
			continue // a thread that has ended
		}
		s.threads[t.PID] = status
		s.Waits += status.VoluntaryCtxtSwitches
		s.Forced += status.NonVoluntaryCtxtSwitches
	}
	return s, nil
}

// Since is how many there were since an earlier reading. Those of threads that ended
// meanwhile are not in it.
func (s Switches) Since(before Switches) Switches {
	var d Switches
	for id, now := range s.threads {
		then := before.threads[id] // zero for a new thread
		d.Waits += now.VoluntaryCtxtSwitches - then.VoluntaryCtxtSwitches
		d.Forced += now.NonVoluntaryCtxtSwitches - then.NonVoluntaryCtxtSwitches
	}
	return d
}

// Sched is what the scheduler says of all threads of a process, from their
// schedstat.
type Sched struct {
	// Ran is the time on a processor, Waited the time on a run queue.
	Ran, Waited time.Duration
}

// ReadSched reads the scheduler's account of a process.
func ReadSched(pid int) (Sched, error) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return Sched{}, err
	}
	var s Sched
	for _, t := range threads {
		stat, err := t.Schedstat()
		if err != nil {
			continue // a thread that has ended
		}
		s.Ran += time.Duration(stat.RunningNanoseconds)
		s.Waited += time.Duration(stat.WaitingNanoseconds)
	}
	return s, nil
}
