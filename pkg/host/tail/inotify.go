package tail

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What is watched. A folder is watched for names that appear, and not, as libraries
// do that watch folders, for writes to everything in it: under /var/log each of those
// would wake us.
const (
	dirMask  = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR
	fileMask = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_MOVE_SELF
)

// inotify is an inotify(7) instance in the runtime's poller: while nothing happens no
// thread is blocked and no timer runs.
type inotify struct {
	f    *os.File
	conn syscall.RawConn
	buf  []byte
}

type event struct {
	wd   int32
	mask uint32
	name string
}

func newInotify() (*inotify, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w (see fs.inotify.max_user_instances)", err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	conn, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &inotify{f: f, conn: conn, buf: make([]byte, 4096)}, nil
}

func (n *inotify) close() { _ = n.f.Close() }

// add watches the file that is open as f, whatever its name means by now: no link
// can be slipped in between.
func (n *inotify) add(f *os.File, mask uint32) (int32, error) {
	wd := -1
	err := n.control(func(fd int) (err error) {
		wd, err = unix.InotifyAddWatch(fd, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), mask)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("inotify: watch %s: %w (see fs.inotify.max_user_watches)", f.Name(), err)
	}
	return int32(wd), nil
}

// remove ends a watch. One that has ended by itself is fine.
func (n *inotify) remove(wd int32) {
	_ = n.control(func(fd int) error {
		_, err := unix.InotifyRmWatch(fd, uint32(wd))
		return err
	})
}

func (n *inotify) control(f func(fd int) error) error {
	var err error
	if cerr := n.conn.Control(func(fd uintptr) { err = f(int(fd)) }); cerr != nil {
		return cerr
	}
	return err
}

// wait returns the next events, as many as there are.
func (n *inotify) wait(ctx context.Context) ([]event, error) {
	stop := context.AfterFunc(ctx, func() { _ = n.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	c, err := n.f.Read(n.buf)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case c == 0:
		return nil, io.ErrUnexpectedEOF
	}
	return parseEvents(n.buf[:c]), nil
}

// parseEvents takes struct inotify_event after struct inotify_event.
func parseEvents(b []byte) []event {
	var events []event
	for len(b) >= unix.SizeofInotifyEvent {
		size := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		if size > len(b) {
			break
		}
		events = append(events, event{
			wd:   int32(binary.NativeEndian.Uint32(b)),
			mask: binary.NativeEndian.Uint32(b[4:]),
			name: strings.TrimRight(string(b[unix.SizeofInotifyEvent:size]), "\x00"),
		})
		b = b[size:]
	}
	return events
}
