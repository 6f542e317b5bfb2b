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

// startJournald runs systemd-journald by hand where no systemd does. It runs as
// part of the node, so that the journal is the node's and not the machine's.
func (c *Cluster) startJournald(ctx context.Context) error {
	if exec.CommandContext(ctx, "systemd-cat", "true").Run() != nil {
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
			return exec.CommandContext(ctx, "systemd-cat", "true").Run()
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
