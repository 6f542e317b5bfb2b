package collect

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// fileSource is a file of the host: the first of the paths that exists.
type fileSource struct {
	paths func(*env) []string
	// all joins all that exist instead, each under a line with its name.
	all bool
}

// file is an entry for the first of the host's files that exists.
func file(path string, from ...string) entry {
	return fileOf(path, func(*env) []string { return from })
}

// fileOf is file with names that depend on the host.
func fileOf(path string, from func(*env) []string) entry {
	return entry{path: path, src: fileSource{paths: from}, timeout: fileTimeout, lane: laneFile}
}

// files is an entry that joins those of the host's files that exist.
func files(path string, from func(*env) []string) entry {
	return entry{path: path, src: fileSource{paths: from, all: true}, timeout: fileTimeout, lane: laneFile}
}

func (fileSource) kind() bundle.Source { return bundle.SourceFile }

func (s fileSource) fetch(ctx context.Context, e *env, out *sink) error {
	var missing []string
	found := false
	for _, p := range s.paths(e) {
		if p == "" {
			continue
		}
		f, err := e.openRegular(p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			missing = append(missing, p)
			continue
		}
		if err != nil {
			out.note(func(o *sink) { o.from = p })
			return err
		}
		found = true
		out.note(func(o *sink) { o.from = strings.TrimSpace(o.from + " " + p) })
		if s.all {
			_, err = fmt.Fprintf(out, "### %s\n", p)
		}
		if err == nil {
			err = copyFile(ctx, f, p, out)
		}
		// Opened for reading: Close has nothing to lose.
		_ = f.Close()
		if err != nil || !s.all {
			return err
		}
		if _, err := io.WriteString(out, "\n"); err != nil {
			return err
		}
	}
	if found {
		return nil
	}
	if len(missing) == 0 {
		return absent("the host's configuration names no such file")
	}
	return absent("no %s", strings.Join(missing, ", no "))
}

// podWritable are folders that pods with a hostPath can commonly write to. Links
// are refused there.
var podWritable = []string{"/var/log/", "/tmp/"}

// openRegular opens a regular file of the host. FIFOs, devices and folders are
// refused, and links where pods can plant them.
func (e *env) openRegular(path string) (*os.File, error) {
	f, err := e.open(path)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s: is, or leads through, a symbolic link: refused, since pods can write there", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file (%s), refused", path, info.Mode().Type())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// open opens a file or folder of the host, without links where pods can write.
func (e *env) open(path string) (*os.File, error) {
	if !writableByPods(path) {
		return e.host.Open(path)
	}
	f, err := e.host.OpenNoFollow(path)
	if errors.Is(err, unix.ELOOP) {
		// Some images keep the logs of pods on another disk.
		if moved, ok := e.movedPodLogs(path); ok {
			return e.host.OpenNoFollow(moved)
		}
	}
	return f, err
}

func writableByPods(path string) bool {
	return slices.ContainsFunc(podWritable, func(dir string) bool { return strings.HasPrefix(path, dir) })
}

// movedPodLogs follows /var/log/pods itself, if it is a link, and nothing below it.
func (e *env) movedPodLogs(path string) (string, bool) {
	const pods = "/var/log/pods"
	rest, ok := strings.CutPrefix(path, pods)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	to, err := os.Readlink(e.host.Path(pods))
	if err != nil || !strings.HasPrefix(to, "/") {
		return "", false
	}
	return to + rest, true
}

// copyFile copies what f held when it was opened: a log may grow faster than it is
// read. Of a file over the bound only the head and the tail are read.
func copyFile(ctx context.Context, f *os.File, name string, out *sink) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if isArchive(name) {
		out.storeRaw()
	} else if strings.HasSuffix(name, ".gz") {
		return copyGzip(ctx, f, out)
	}
	r := ctxReader{ctx, f}
	switch {
	case size == 0:
		// Those of /proc say 0.
		_, err = io.Copy(out, r)
	case size <= out.limit || out.binary:
		if size > out.limit {
			return fmt.Errorf("%s: %d bytes, over the bound of %d, and an archive cut short is of no use", name, size, out.limit)
		}
		_, err = io.Copy(out, io.LimitReader(r, size))
	default:
		err = copyEnds(r, f, size, out)
	}
	return err
}

// copyEnds copies the first and the last part of a file that is over the bound.
func copyEnds(r io.Reader, f *os.File, size int64, out *sink) error {
	half := out.limit / 2
	if _, err := io.Copy(out, io.LimitReader(r, half)); err != nil {
		return err
	}
	if err := out.gap(size - 2*half); err != nil {
		return err
	}
	if _, err := f.Seek(size-half, io.SeekStart); err != nil {
		return err
	}
	tail := &tailStart{out: out}
	if _, err := io.Copy(tail, io.LimitReader(r, half)); err != nil {
		return err
	}
	return tail.flush()
}

// copyGzip redacts the text within a compressed log, and compresses it again.
func copyGzip(ctx context.Context, f *os.File, out *sink) error {
	zr, err := gzip.NewReader(ctxReader{ctx, f})
	if err != nil {
		return fmt.Errorf("not gzip: %w", err)
	}
	out.compress()
	n, err := io.Copy(out, io.LimitReader(zr, out.limit))
	if err != nil || n < out.limit {
		return err
	}
	if k, _ := zr.Read(make([]byte, 1)); k == 0 {
		return nil
	}
	out.note(func(s *sink) { s.cut = true })
	_, err = fmt.Fprintf(out, "\n[... node-agent left out the rest here: the bound is %d bytes ...]\n", out.limit)
	return err
}

// isArchive says that a file is a container of files: it is not looked into.
func isArchive(name string) bool {
	for _, ext := range []string{".tar", ".tar.gz", ".tgz", ".zip", ".xz", ".zst", ".bz2", ".lz4"} {
		if strings.HasSuffix(name, ext) {
			return true
		}
	}
	return false
}

// ctxReader stops reading when ctx ends.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
