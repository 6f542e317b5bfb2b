package kmsg

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
	"golang.org/x/sys/unix"
)

// device is an open /dev/kmsg. Tests put kernels into it that overrun and refuse.
type device interface {
	// next reads one record into p. waited says that the record was not there yet
	// when next was called, so that it is as old as the wake-up took. The error is
	// that of read(2): EPIPE after an overrun, EINVAL for a record longer than p,
	// which is then gone from this device, io.EOF, or ctx's. It calls idle before it
	// waits: the log is read to its end.
	next(ctx context.Context, p []byte, idle func() error) (n int, waited bool, err error)
	io.Closer
}

// path is the kernel's log.
const path = "/dev/kmsg"

// open opens the kernel's log at its oldest record.
func open(h *host.Host) (device, error) {
	f, err := h.Open(path)
	if err != nil {
		return nil, err
	}
	return newFileDevice(f)
}

// fileDevice reads a character device (or, in tests, a socket) through the runtime's
// poller: while nothing is logged no thread is blocked and no timer runs.
type fileDevice struct {
	f    *os.File
	conn syscall.RawConn
}

func newFileDevice(f *os.File) (*fileDevice, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &fileDevice{f: f, conn: conn}, nil
}

func (d *fileDevice) Close() error { return d.f.Close() }

func (d *fileDevice) next(ctx context.Context, p []byte, idle func() error) (n int, waited bool, err error) {
	if ctx.Err() != nil {
		return 0, false, ctx.Err()
	}
	stop := func() bool { return true }
	perr := d.conn.Read(func(fd uintptr) bool {
		for {
			n, err = unix.Read(int(fd), p)
			if err != unix.EINTR {
				break
			}
		}
		if err != unix.EAGAIN {
			return true
		}
		if !waited {
			waited = true
			if err = idle(); err != nil {
				return true
			}
			stop = context.AfterFunc(ctx, func() { _ = d.f.SetReadDeadline(time.Unix(1, 0)) })
		}
		return false
	})
	stop()
	switch {
	case ctx.Err() != nil && errors.Is(perr, os.ErrDeadlineExceeded):
		return 0, waited, ctx.Err()
	case perr != nil:
		return 0, waited, perr
	case err != nil:
		return 0, waited, err
	case n == 0:
		return 0, waited, io.EOF
	}
	return n, waited, nil
}
