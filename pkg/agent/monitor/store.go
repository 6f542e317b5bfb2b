package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// fileStore keeps the ledger's state in one file.
type fileStore struct{ path string }

// maxState bounds what is read at the start.
const maxState = 4 << 20

// Load implements ledger.Store.
func (s fileStore) Load() ([]byte, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxState {
		return nil, fmt.Errorf("%s: %d bytes is too large", s.path, info.Size())
	}
	return os.ReadFile(s.path)
}

// Save implements ledger.Store.
func (s fileStore) Save(b []byte) error { return host.ReplaceFile(s.path, b) }

// lockRetry is how often a second agent on the node looks whether the first is gone.
const lockRetry = 2 * time.Second

// lock makes this the only agent that works with the state directory, and waits
// while there is another. A directory that cannot be written is no reason not to
// work. The returned function gives the lock back.
func lock(ctx context.Context, dir string, log *slog.Logger, waiting func()) (func(), error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		log.Warn("the state directory cannot be locked: a second agent on this node would not be noticed by it", "err", err)
		return func() {}, nil
	}
	for first := true; ; first = false {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			log.Warn("the state directory cannot be locked", "err", err)
			return func() { f.Close() }, nil
		}
		if first {
			log.Warn("AnotherAgentActive: another node-agent uses the state directory, this one waits for its end", "dir", dir)
			waiting()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(lockRetry):
		}
	}
}
