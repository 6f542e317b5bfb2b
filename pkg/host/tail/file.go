package tail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// maxLine bounds a line; what is longer is cut there.
	maxLine = 1 << 20
	// firstRead is how much of the end of a file is read at the first start.
	firstRead = 1 << 20
	// markSize is how many bytes before the offset are remembered, to see whether the
	// file is still the one that was read.
	markSize = 64
)

// id tells files apart: device, inode, and how often the file was truncated, since
// after that the same offset is another record.
type id struct {
	dev, ino   uint64
	generation int
}

func (i id) String() string {
	s := fmt.Sprintf("%d:%d", i.dev, i.ino)
	if i.generation > 0 {
		s += "." + strconv.Itoa(i.generation)
	}
	return s
}

// position is that of a byte in a file, as in host.Record.Position.
func (i id) position(offset int64) string {
	return "file/" + i.String() + "/" + strconv.FormatInt(offset, 10)
}

func parsePosition(s string) (i id, offset int64, ok bool) {
	rest, ok := strings.CutPrefix(s, "file/")
	if !ok {
		return id{}, 0, false
	}
	name, off, _ := strings.Cut(rest, "/")
	dev, ino, _ := strings.Cut(name, ":")
	ino, gen, truncated := strings.Cut(ino, ".")
	var errs [4]error
	i.dev, errs[0] = strconv.ParseUint(dev, 10, 64)
	i.ino, errs[1] = strconv.ParseUint(ino, 10, 64)
	if truncated {
		i.generation, errs[2] = strconv.Atoi(gen)
	}
	offset, errs[3] = strconv.ParseInt(off, 10, 63)
	return i, offset, errors.Join(errs[:]...) == nil
}

func statID(f *os.File) (id, os.FileInfo, error) {
	info, err := f.Stat()
	if err != nil {
		return id{}, nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() {
		return id{}, nil, fmt.Errorf("%s is not a regular file", f.Name())
	}
	return id{dev: uint64(st.Dev), ino: st.Ino}, info, nil
}

// file is an open file that is followed.
type file struct {
	f    *os.File
	path string
	id   id
	wd   int32
	// offset is where the next read begins; the line in partial began len(partial)
	// bytes before, unless it is being cut.
	offset  int64
	partial []byte
	cutting bool
	mark    []byte
	// mtime is set while what the file held when it was opened is read: no line of that
	// is younger.
	mtime time.Time
	// sinceBoot says that lines from before this boot are left out.
	sinceBoot bool
	// behind is the file that had this name before, until this one has a line.
	behind *file
}

// seek makes offset the place where reading begins. Where that is in the middle of a
// line, as cutting says, the rest of the line is left out.
func (f *file) seek(offset int64, cutting bool) {
	f.offset, f.cutting = offset, cutting
	f.mark = make([]byte, min(offset, markSize))
	if n, err := f.f.ReadAt(f.mark, offset-int64(len(f.mark))); n < len(f.mark) || err != nil && !errors.Is(err, io.EOF) {
		f.mark = nil
	}
}

// deleted says that the file has no name any more.
func (f *file) deleted() bool {
	info, err := f.f.Stat()
	if err != nil {
		return true
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

// read hands on the lines that the file has grown by.
func (f *file) read(buf []byte, line func(start, end int64, text []byte) error) error {
	if err := f.checkTruncated(); err != nil {
		return err
	}
	for {
		n, err := f.f.ReadAt(buf, f.offset)
		if n > 0 {
			f.offset += int64(n)
			f.remember(buf[:n])
			if err := f.split(buf[:n], line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			f.mtime = time.Time{}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// checkTruncated begins again where a file was cut to nothing in place (copytruncate):
// it is shorter than what was read, or, when it has grown again since, holds
// something else before the offset.
func (f *file) checkTruncated() error {
	now := make([]byte, len(f.mark))
	n, err := f.f.ReadAt(now, f.offset-int64(len(f.mark)))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n == len(f.mark) && bytes.Equal(now, f.mark) {
		return nil
	}
	f.offset, f.partial, f.cutting, f.mark = 0, nil, false, nil
	f.id.generation++
	return nil
}

func (f *file) remember(b []byte) {
	f.mark = append(f.mark, b[max(0, len(b)-markSize):]...)
	if over := len(f.mark) - markSize; over > 0 {
		f.mark = append(f.mark[:0], f.mark[over:]...)
	}
}

// split cuts b, which was read up to the offset, into lines.
func (f *file) split(b []byte, line func(start, end int64, text []byte) error) error {
	at := f.offset - int64(len(b))
	for len(b) > 0 {
		text, rest, whole := bytes.Cut(b, []byte{'\n'})
		start := at - int64(len(f.partial))
		at += int64(len(text))
		if whole {
			at++
		}
		b = rest
		if f.cutting {
			f.cutting = !whole
			continue
		}
		if room := maxLine - len(f.partial); len(text) > room {
			text, f.cutting = text[:room], !whole
			whole = true
		}
		if !whole {
			f.partial = append(f.partial, text...)
			continue
		}
		if len(f.partial) > 0 {
			f.partial = append(f.partial, text...)
			text = f.partial
		}
		if err := line(start, at, text); err != nil {
			return err
		}
		f.partial = nil
	}
	return nil
}
