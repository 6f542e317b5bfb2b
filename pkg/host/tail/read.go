package tail

import (
	"fmt"
	"hash/crc32"
	"os"
	"path"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// memory stands in for a checkpoint store, so that a reader that fails and starts
// again goes on where it was.
type memory map[string]string

func (m memory) Get(k string) string { return m[k] }

func (m memory) Set(k, v string) {
	if v == "" {
		delete(m, k)
		return
	}
	m[k] = v
}

// checkpointKey is the key of a file's checkpoint.
func checkpointKey(name string) string { return "file:" + name }

// checksum is kept with a checkpoint: the length and a hash of the end of the last
// line. A file system gives the inode of a deleted file to the next one.
func checksum(line []byte) string {
	line = line[max(0, len(line)-markSize):]
	return fmt.Sprintf("%d-%08x", len(line), crc32.ChecksumIEEE(line))
}

// endsWith says whether the line that ends before offset is the one that sum was made
// of. Without a sum there is nothing to doubt.
func endsWith(f *os.File, offset int64, sum string) bool {
	var n int64
	if _, err := fmt.Sscanf(sum, "%d-", &n); err != nil || n < 0 || n > markSize || n >= offset {
		return sum == "" || n >= offset
	}
	line := make([]byte, n)
	if _, err := f.ReadAt(line, offset-1-n); err != nil {
		return false
	}
	return checksum(line) == sum
}

// hostZone is the time zone that the host's own programs write in.
func hostZone(h *host.Host) *time.Location {
	if b, err := h.ReadFile("/etc/localtime", 1<<20); err == nil {
		if zone, err := time.LoadLocationFromTZData("host", b); err == nil {
			return zone
		}
	}
	return time.UTC
}

// begin decides where reading of a file begins that was not open before, and returns
// the file that had its name when the checkpoint was written, if there is one that
// may have more to tell.
func (s *Source) begin(f *file, info os.FileInfo) (*file, error) {
	position, sum, _ := strings.Cut(s.opts.Checkpoints.Get(checkpointKey(f.path)), "#")
	known, offset, ok := parsePosition(position)
	switch {
	case !ok:
		f.sinceBoot = true
		if start := info.Size() - firstRead; start > 0 && !s.started {
			f.seek(start, true)
		}
	case known.dev != f.id.dev || known.ino != f.id.ino:
		return s.findRotated(f.path, known, offset)
	case info.Size() < offset || !endsWith(f.f, offset, sum):
		f.id = known
		f.id.generation++
	default:
		f.id = known
		f.seek(offset, false)
	}
	return nil, nil
}

// findRotated looks in a file's folder for the file that had its name before. When it
// is gone, or was compressed, then what it had to tell is lost: how much of it, nobody
// knows.
func (s *Source) findRotated(name string, known id, offset int64) (*file, error) {
	entries, err := s.opts.Host.ReadDir(path.Dir(name))
	if err != nil {
		return nil, ignoreGone(err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		f, err := s.opts.Host.OpenNoFollow(path.Join(path.Dir(name), e.Name()))
		if err != nil {
			continue
		}
		i, info, err := statID(f)
		if err != nil || i.dev != known.dev || i.ino != known.ino || info.Size() < offset || s.isOpen(i) {
			f.Close()
			continue
		}
		old := &file{f: f, path: name, id: known, mtime: info.ModTime()}
		old.seek(offset, false)
		if old.wd, err = s.notify.add(f, fileMask); err != nil {
			f.Close()
			return nil, err
		}
		s.byWD[old.wd] = old
		return old, nil
	}
	s.state.AddLost(1)
	return nil, nil
}

// read hands on what a file has grown by. When it is the first that the file tells,
// the file that had its name before has told everything.
func (s *Source) read(f *file, handle host.Handler) error {
	if f.f == nil {
		return nil // closed by an event before
	}
	err := f.read(s.buf, func(start, end int64, text []byte) error {
		if err := s.retire(f, handle); err != nil {
			return err
		}
		return s.take(f, start, end, text, handle)
	})
	if err != nil {
		return err
	}
	if f.deleted() {
		if s.files[f.path] == f {
			delete(s.files, f.path)
			s.opts.Checkpoints.Set(checkpointKey(f.path), "")
		}
		if err := s.retire(f, handle); err != nil {
			return err
		}
		s.close(f)
	}
	return nil
}

// retire reads the file behind f to its end and closes it.
func (s *Source) retire(f *file, handle host.Handler) error {
	old := f.behind
	if old == nil {
		return nil
	}
	f.behind = nil
	buf := s.buf // f's lines lie in it
	s.buf = make([]byte, len(buf))
	defer func() { s.buf = buf }()
	if err := s.read(old, handle); err != nil {
		return err
	}
	if err := s.retire(old, handle); err != nil {
		return err
	}
	s.close(old)
	return nil
}

func (s *Source) close(f *file) {
	if f.f == nil {
		return
	}
	s.notify.remove(f.wd)
	delete(s.byWD, f.wd)
	f.f.Close()
	f.f = nil
}

// take hands one line on.
func (s *Source) take(f *file, start, end int64, text []byte, handle host.Handler) error {
	now := time.Now()
	latest := now
	if !f.mtime.IsZero() {
		latest = f.mtime
	}
	at, ok := stamp(text, s.zone, latest)
	if !ok {
		at = latest
	}
	boot := s.boot
	if at.Before(s.booted) {
		if f.sinceBoot {
			return nil
		}
		boot = ""
	}
	r := host.Record{
		Source: host.SourceFile, Message: string(text), Path: f.path, Priority: host.Unknown, Facility: host.Unknown,
		At: at, Boot: boot, Position: f.id.position(start),
	}
	if err := handle(r); err != nil {
		return errHandler{err}
	}
	s.state.Saw(now)
	position := f.id.position(end)
	if !f.cutting {
		position += "#" + checksum(text)
	}
	s.opts.Checkpoints.Set(checkpointKey(f.path), position)
	return nil
}
