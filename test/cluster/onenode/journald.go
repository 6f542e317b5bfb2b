package onenode

import (
	"context"
	"os"
	"os/exec"
	"time"
)

const (
	journald       = "/lib/systemd/systemd-journald"
	journalRuntime = "/run/systemd/journal"
)

// journalServed tells whether some journald takes what is written to the journal.
func journalServed(ctx context.Context) bool {
	return exec.CommandContext(ctx, "systemd-cat", "true").Run() == nil
}

// startJournald runs systemd-journald by hand where no systemd does. It runs as
// part of the node, so that the journal is the node's and not the machine's.
func (c *Cluster) startJournald(ctx context.Context) error {
	if !journalServed(ctx) {
		// It makes its sockets in this folder but not the folder, nor does it take
		// over the sockets that a killed one has left.
		if err := c.makeDir(journalRuntime); err != nil {
			return err
		}
		if err := c.makeDir("/run/log/journal"); err != nil {
			return err
		}
		for _, name := range []string{"stdout", "socket", "dev-log", "io.systemd.journal"} {
			_ = os.Remove(journalRuntime + "/" + name)
		}
		if err := c.startInNode("journald", nil, journald); err != nil {
			return err
		}
		err := c.await(ctx, "journald", "journal to write to", 10*time.Second, func(ctx context.Context) error {
			if !journalServed(ctx) {
				return errNotYet
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if _, err := os.Lstat("/dev/log"); err == nil {
		return nil
	}
	if err := c.noteMade("/dev/log"); err != nil {
		return err
	}
	return os.Symlink(journalRuntime+"/dev-log", "/dev/log")
}
