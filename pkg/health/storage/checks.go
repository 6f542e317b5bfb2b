// Package storage holds the checks behind the condition StorageReady: what the
// kernel's log does not say of disks and filesystems, and must be measured. Each is a
// thin reader and a pure function.
package storage

import (
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

// Options are what the checks need.
type Options struct {
	// Catalog gives reasons their severity.
	Catalog *health.Catalog
	// Processes is shared with the other checks that look at processes.
	Processes *proc.Cache
	// Memory keeps what must outlive a restart: which mounts became read-only. Nil for
	// a scan, which has no past.
	Memory host.Checkpoints
	// EssentialMounts are mount points that must be writable and have space, beside
	// those of the node itself.
	EssentialMounts []string
	// Asker makes the command of the process that asks filesystems for their size; nil
	// means this program's verb. Its arguments are the paths, see Serve.
	Asker func(paths []string) *exec.Cmd
	// Log is told what cannot be measured; nil for nobody.
	Log *slog.Logger
}

// Checks returns all of them, in the order in which a scan shows them.
func Checks(o Options) []check.Check {
	if o.Asker == nil {
		o.Asker = askerCommand
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return []check.Check{
		newReadOnly(o),
		newSpace(o),
		newHung(o),
		newIODelays(o),
		newEBS(o),
	}
}

// Verb is the verb of this program that calls Serve.
const Verb = "ask-filesystems"

// askerCommand is this program as the one that asks. /proc/self/exe is the running
// program even when its file has been replaced.
func askerCommand(paths []string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{Verb, "--"}, paths...)...)
	cmd.Args[0] = "node-agent"
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	return cmd
}

func info(name string, every time.Duration, reasons ...string) check.Info {
	return check.Info{ID: name, For: health.StorageReady, Codes: reasons, Every: every}
}
