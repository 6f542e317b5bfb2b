package capture

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"time"
)

// sweep removes what is due from the host, unless a capture is at work, and arranges
// to look again when the next is.
func (c *Controller) sweep() {
	if c.mem.running != nil {
		return
	}
	name := BundleName(c.cfg.Node)
	c.inFolder(SupportDir, func(f *os.Root) error {
		due, err := sweep(f, name, c.cfg.Retention, time.Now())
		if !due.IsZero() {
			c.wakeBy(due)
		}
		return err
	})
	c.inFolder(c.uploads(), func(f *os.Root) error { return discard(f, name) })
}

// discard removes the node's bundle from the host.
func (c *Controller) discard() {
	c.inFolder(SupportDir, func(f *os.Root) error { return discard(f, BundleName(c.cfg.Node)) })
}

func (c *Controller) uploads() string { return path.Join(c.cfg.StateDir, uploadsDir) }

// inFolder does something in a folder of the host, if there is one.
func (c *Controller) inFolder(dir string, do func(*os.Root) error) {
	f, err := openFolder(c.cfg.Host, dir, false)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = do(f)
		f.Close()
	}
	if err != nil {
		c.log.Warn("could not tidy up after captures", "folder", dir, "err", err)
		c.wakeBy(time.Now().Add(time.Minute))
	}
}

// wakeBy has the controller look again at t at the latest.
func (c *Controller) wakeBy(t time.Time) {
	if c.wake.IsZero() || t.Before(c.wake) {
		c.wake = t
	}
}

// timer fires when it is time to look again.
func (c *Controller) timer() *time.Timer {
	if c.wake.IsZero() {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	return time.NewTimer(max(time.Until(c.wake), 10*time.Millisecond))
}

// latest puts v into a channel of one place, in the place of what nobody has taken.
// Only one goroutine may put.
func latest[T any](ch chan T, v T) {
	for {
		select {
		case ch <- v:
			return
		default:
		}
		select {
		case <-ch:
		default:
		}
	}
}
