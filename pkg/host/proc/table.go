package proc

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
	"golang.org/x/sys/unix"
)

// Table is the processes of the host at one time. Its readers share it: they must not
// change it.
type Table struct {
	// At is when it was read.
	At time.Time
	// Processes are in no order. One that ended while the table was read may be
	// missing.
	Processes []Stat
}

// Cache lets checks that run at about the same time share one Table. It is safe for
// concurrent use.
type Cache struct {
	host *host.Host

	mu    sync.Mutex
	table *Table
}

// NewCache returns the cache for the processes of h.
func NewCache(h *host.Host) *Cache { return &Cache{host: h} }

// Table returns a table that is at most maxAge old.
func (c *Cache) Table(ctx context.Context, maxAge time.Duration) (*Table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.table != nil && time.Since(c.table.At) <= maxAge {
		return c.table, nil
	}
	t := &Table{At: time.Now()}
	if c.table != nil {
		t.Processes = make([]Stat, 0, len(c.table.Processes)+16)
	}
	c.table = nil
	err := Walk(ctx, c.host, func(s Stat) { t.Processes = append(t.Processes, s) })
	if err != nil {
		return nil, err
	}
	if maxAge > 0 {
		c.table = t
	}
	return t, nil
}

// Walk calls visit for each process of the host.
func Walk(ctx context.Context, h *host.Host, visit func(Stat)) error {
	dir, err := h.Open("/proc")
	if err != nil {
		return fmt.Errorf("processes: %w", err)
	}
	defer dir.Close()
	return walk(ctx, newPacer(), dir, visit)
}

// WalkThreads calls visit for each thread of the host, with the process that it
// belongs to. On a node with tens of thousands of them that takes most of a second of
// CPU time, and ten times as long: ask first whether there is a reason.
func WalkThreads(ctx context.Context, h *host.Host, visit func(pid int, thread Stat)) error {
	dir, err := h.Open("/proc")
	if err != nil {
		return fmt.Errorf("threads: %w", err)
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("threads: %w", err)
	}
	pace := newPacer()
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		fd, err := unix.Openat(int(dir.Fd()), name+"/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue // it ended
		}
		tasks := os.NewFile(uintptr(fd), name+"/task")
		err = walk(ctx, pace, tasks, func(s Stat) { visit(pid, s) })
		tasks.Close()
		if ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// ReadThread reads the stat of one thread of a process.
func ReadThread(h *host.Host, pid, tid int) (Stat, error) {
	b, err := h.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid), 4096)
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(b)
}

// walk reads the stat of each numbered folder in dir.
func walk(ctx context.Context, pace *pacer, dir *os.File, visit func(Stat)) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("%s: %w", dir.Name(), err)
	}
	buf := make([]byte, 2048)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if err := pace.step(ctx); err != nil {
			return err
		}
		n, err := readAt(dir, name+"/stat", buf)
		if err != nil {
			continue // it ended
		}
		if s, err := ParseStat(buf[:n]); err == nil {
			visit(s)
		}
	}
	return nil
}

// readAt reads a small file in dir with three system calls, which is what counts when
// there are thousands.
func readAt(dir *os.File, name string, buf []byte) (int, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}
