// Package proc reads what several checks want to know of the host's processes, once
// for all of them. It reads only what cannot hang: never the memory of a process
// (environ, cmdline, maps), which waits for the process's own lock.
package proc

import (
	"bytes"
	"errors"
	"strconv"
)

// Stat is what /proc/PID/stat tells of a process, or /proc/PID/task/TID/stat of a
// thread (proc_pid_stat(5)).
type Stat struct {
	// PID is the process's, or the thread's, id on the host.
	PID int
	// Comm is the name that it gave itself, at most 15 bytes of anything.
	Comm string
	// State is one letter: R, S, D (cannot be interrupted), Z (zombie), T, t, X, I.
	State byte
	// PPID is its parent.
	PPID int
	// Start is when it started, in clock ticks since boot. Together with PID it names
	// a process for good.
	Start uint64
	// BlockWait is how long its threads have waited for block I/O, in clock ticks (100 a
	// second); 0 too when the kernel does not count it (kernel.task_delayacct).
	BlockWait uint64
	// EnvSize is the size in bytes of the environment that it was started with; 0 when
	// unknown, for kernel threads and for whoever may not see it.
	EnvSize uint64
}

var errFormat = errors.New("not in the format of /proc/PID/stat")

// Fields of /proc/PID/stat after the name, from 0.
const (
	fieldState     = 0
	fieldPPID      = 1
	fieldStart     = 19
	fieldBlockWait = 39
	fieldEnvStart  = 47
	fieldEnvEnd    = 48
)

// ParseStat parses one line. The name may hold spaces and parentheses: it ends at the
// last ")".
func ParseStat(b []byte) (Stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return Stat{}, errFormat
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b[:open])))
	if err != nil {
		return Stat{}, errFormat
	}
	s := Stat{PID: pid, Comm: string(b[open+1 : end])}
	var envStart uint64
	field := 0
	for rest := b[end+1:]; ; field++ {
		rest = bytes.TrimLeft(rest, " \n")
		if len(rest) == 0 {
			break
		}
		var word []byte
		if i := bytes.IndexByte(rest, ' '); i >= 0 {
			word, rest = rest[:i], rest[i:]
		} else {
			word, rest = bytes.TrimRight(rest, "\n"), nil
		}
		switch field {
		case fieldState:
			s.State = word[0]
		case fieldPPID:
			s.PPID, err = strconv.Atoi(string(word))
		case fieldStart:
			s.Start, err = strconv.ParseUint(string(word), 10, 64)
		case fieldBlockWait:
			s.BlockWait, err = strconv.ParseUint(string(word), 10, 64)
		case fieldEnvStart:
			envStart, err = strconv.ParseUint(string(word), 10, 64)
		case fieldEnvEnd:
			var envEnd uint64
			envEnd, err = strconv.ParseUint(string(word), 10, 64)
			if envEnd > envStart {
				s.EnvSize = envEnd - envStart
			}
		}
		if err != nil {
			return Stat{}, errFormat
		}
	}
	if field <= fieldStart {
		return Stat{}, errFormat
	}
	return s, nil
}
