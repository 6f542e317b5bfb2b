package collect

import (
	"fmt"
	"io"
	"os"
)

// spoolMemory is how much of an item is kept in memory before it goes to a file.
const spoolMemory = 256 << 10

// spool holds one item until it goes into the archive, whose format wants its size
// first. Of what is over the limit it keeps the head and, in a ring, the tail. It
// holds redacted text only.
type spool struct {
	limit, head int64
	n           int64
	mem         []byte
	file        *os.File
	// newFile makes an unlinked file for what does not stay in memory.
	newFile func() (*os.File, error)
}

// newSpool returns a spool that keeps limit bytes, half of them from the end.
func newSpool(limit int64, newFile func() (*os.File, error)) *spool {
	return &spool{limit: limit, head: (limit + 1) / 2, newFile: newFile}
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		off, room := s.n, s.head-s.n
		if room <= 0 {
			ring := s.limit - s.head
			if ring == 0 {
				s.n += int64(len(p))
				return written + len(p), nil
			}
			at := (s.n - s.head) % ring
			off, room = s.head+at, ring-at
		}
		k := min(int64(len(p)), room)
		if err := s.store(p[:k], off); err != nil {
			return written, err
		}
		s.n += k
		written += int(k)
		p = p[k:]
	}
	return written, nil
}

func (s *spool) store(p []byte, off int64) error {
	end := off + int64(len(p))
	if s.file == nil && end > spoolMemory {
		f, err := s.newFile()
		if err != nil {
			return fmt.Errorf("temporary file: %w", err)
		}
		s.file = f
		if _, err := f.WriteAt(s.mem, 0); err != nil {
			return err
		}
		s.mem = nil
	}
	if s.file != nil {
		_, err := s.file.WriteAt(p, off)
		return err
	}
	if off == int64(len(s.mem)) {
		s.mem = append(s.mem, p...)
		return nil
	}
	copy(s.mem[off:end], p)
	return nil
}

// truncated says that the middle was left out.
func (s *spool) truncated() bool { return s.n > s.limit }

func (s *spool) marker() string {
	if !s.truncated() {
		return ""
	}
	return gapLine(s.n-s.limit, s.limit)
}

// gapLine is the line that stands where the middle of a file was left out.
func gapLine(left, limit int64) string {
	return fmt.Sprintf("\n[... node-agent left out %d bytes here: the bound is %d ...]\n", left, limit)
}

// size is how many bytes reader gives.
func (s *spool) size() int64 {
	return min(s.n, s.limit) + int64(len(s.marker()))
}

// reader reads what the spool holds. Nothing may be written to it any more.
func (s *spool) reader() io.Reader {
	section := func(off, n int64) io.Reader {
		if s.file != nil {
			return io.NewSectionReader(s.file, off, n)
		}
		return &byteReader{s.mem[off : off+n]}
	}
	if !s.truncated() {
		return section(0, s.n)
	}
	ring := s.limit - s.head
	if ring == 0 {
		return io.MultiReader(section(0, s.head), &byteReader{[]byte(s.marker())})
	}
	at := (s.n - s.head) % ring
	return io.MultiReader(section(0, s.head), &byteReader{[]byte(s.marker())}, section(s.head+at, ring-at), section(s.head, at))
}

// discard gives the memory or the file back.
func (s *spool) discard() {
	s.mem = nil
	if s.file != nil {
		// Unlinked and only read: there is nothing that Close could lose.
		_ = s.file.Close()
	}
}

// byteReader is a bytes.Reader without its WriterTo, which would hand a whole
// spool to a writer in one call.
type byteReader struct{ b []byte }

func (r *byteReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}
