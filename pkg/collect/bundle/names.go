package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// cleanName returns the name of an archive entry relative to the archive's root,
// without a leading "./", or an error if it could lead out of a folder that the
// archive is extracted into, on any platform.
func cleanName(name string) (string, error) {
	switch {
	case name == "", strings.ContainsAny(name, "\x00\\"):
		return "", corrupt("unsafe name %q", name)
	case strings.HasPrefix(name, "/"):
		return "", corrupt("unsafe name %q: absolute", name)
	case len(name) > 1 && name[1] == ':':
		return "", corrupt("unsafe name %q: a drive letter", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", corrupt("unsafe name %q: leads upwards", name)
		}
	}
	return path.Clean(name), nil
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

// sourceReader remembers the error of the reader that a bundle comes from, so
// that a lost connection is not reported as a damaged bundle.
type sourceReader struct {
	r   io.Reader
	err error
}

func (s *sourceReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

func (s *sourceReader) explain(where string, err error) error {
	if s.err != nil {
		return s.err
	}
	if errors.Is(err, ErrCorrupt) {
		return err
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return corrupt("%s: it ends too soon", where)
	}
	return corrupt("%s: %v", where, err)
}

type countingReader struct {
	r   io.Reader
	n   int64
	err error
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.err = err
	return n, err
}

func newBytesReader(b []byte) io.Reader { return bytes.NewReader(b) }

// drainPadding reads to the end what follows the archive in the gzip stream. tar
// pads with zeros; anything else is not ours to ignore.
func drainPadding(r io.Reader) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			if b != 0 {
				return corrupt("data after the end of the archive")
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
