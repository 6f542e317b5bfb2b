package child

import (
	"syscall"

	"github.com/prometheus/procfs"
)

// killSession sends SIGKILL to every process of the session sid. Children that run
// in process groups of their own are in it too; that is why it is not enough to
// kill one group.
func killSession(sid int) {
	procs, err := procfs.AllProcs()
	if err != nil {
		_ = syscall.Kill(sid, syscall.SIGKILL)
		return
	}
	for _, p := range procs {
		if stat, err := p.Stat(); err == nil && stat.Session == sid {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}
