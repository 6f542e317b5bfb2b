package collect

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// keepBytes and keepPercent say how much of the target's filesystem stays free:
	// the smaller of the two. The kubelet evicts pods at 10 % (nodefs.available).
	keepBytes   = 1 << 30
	keepPercent = 10
	// startBytes is what must be there beyond that for a capture to begin.
	startBytes = 16 << 20
	// checkEvery is how many bytes are written between two looks.
	checkEvery = 1 << 20
)

// errNoSpace is the cause of what is left out because the filesystem is filling.
var errNoSpace = errors.New("left out: the filesystem of the bundle is filling up")

// space watches how much is free on the filesystem of the target.
type space struct {
	stat func() (free, keep uint64, err error)
	name string

	mu       sync.Mutex
	since    int64
	reserved uint64
	low      bool
}

func newSpace(dir *os.Root, name string) *space {
	return &space{name: name, stat: func() (uint64, uint64, error) {
		f, err := dir.Open(".")
		if err != nil {
			return 0, 0, err
		}
		defer f.Close()
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
			return 0, 0, err
		}
		size := uint64(st.Bsize)
		return st.Bavail * size, min(keepBytes, st.Blocks*size/100*keepPercent), nil
	}}
}

// begin says whether a capture may begin.
func (s *space) begin() error {
	free, keep, err := s.stat()
	if err != nil {
		return fmt.Errorf("free space of %s: %w", s.name, err)
	}
	if free < keep+startBytes {
		return fmt.Errorf("not enough space: %s has %d MiB free, of which %d MiB stay free, and a bundle needs at least %d MiB: free some space or choose another folder",
			s.name, free>>20, keep>>20, startBytes>>20)
	}
	return nil
}

// use is told of n bytes that are about to be written and says whether they may.
func (s *space) use(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since += int64(n)
	if s.since >= checkEvery {
		s.since = 0
		free, keep, err := s.stat()
		if err != nil {
			return err
		}
		s.low = free < keep+s.reserved
	}
	if s.low {
		return errNoSpace
	}
	return nil
}

// reserve says whether size bytes may go into the archive, as if they could not be
// compressed, and keeps others from that space until release is called.
func (s *space) reserve(size int64) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, keep, err := s.stat()
	if err != nil {
		return nil, err
	}
	need := uint64(size)
	if free < keep+need {
		return nil, errNoSpace
	}
	s.reserved += need
	return func() {
		s.mu.Lock()
		s.reserved -= need
		s.mu.Unlock()
	}, nil
}
