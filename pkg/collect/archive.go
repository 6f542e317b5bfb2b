package collect

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/klauspost/pgzip"
)

const (
	// gzipLevel is the level of gzip(1).
	gzipLevel = 6
	// gzipBlock is what one core compresses at a time. Of its kind twice as many as
	// cores are in memory.
	gzipBlock = 512 << 10
	// gzipCores keeps compression from taking a large machine.
	gzipCores = 2
)

// archive writes the .tar.gz into a temporary file. It is for one goroutine.
type archive struct {
	target *target
	name   string // of the temporary file
	file   *os.File
	sum    hash.Hash
	count  countWriter
	gz     *pgzip.Writer
	tar    *tar.Writer
	now    time.Time
	over   bool
}

func newArchive(t *target, now time.Time) (*archive, error) {
	a := &archive{target: t, name: t.tempName(randomID()), sum: sha256.New(), now: now}
	var err error
	if a.file, err = t.create(a.name); err != nil {
		return nil, err
	}
	a.count.w = io.MultiWriter(a.file, a.sum)
	if a.gz, err = pgzip.NewWriterLevel(&a.count, gzipLevel); err == nil {
		err = a.gz.SetConcurrency(gzipBlock, min(gzipCores, runtime.GOMAXPROCS(0)))
	}
	if err != nil {
		return nil, errors.Join(err, a.abort())
	}
	a.tar = tar.NewWriter(a.gz)
	return a, nil
}

// add writes one entry and returns the hash of its content in hex.
func (a *archive) add(path string, size int64, content io.Reader) (string, error) {
	err := a.tar.WriteHeader(&tar.Header{
		Name: path, Mode: 0o600, Size: size, Typeflag: tar.TypeReg, ModTime: a.now, Format: tar.FormatPAX,
	})
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(a.tar, sum), content); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// finish ends the archive and puts it in its place. It returns its hash and size.
func (a *archive) finish() (string, int64, error) {
	err := errors.Join(a.tar.Close(), a.gz.Close())
	if err == nil {
		err = a.file.Sync()
	}
	if err != nil {
		return "", 0, errors.Join(err, a.abort())
	}
	sum := hex.EncodeToString(a.sum.Sum(nil))
	if err := a.target.place(a.name, sum); err != nil {
		return "", 0, errors.Join(err, a.abort())
	}
	a.over = true
	return sum, a.count.n, a.file.Close()
}

// abort removes the temporary file, unless the archive is over already.
func (a *archive) abort() error {
	if a.over {
		return nil
	}
	a.over = true
	if a.gz != nil {
		// Its goroutines end with it; what it says of a file that goes is of no use.
		_ = a.gz.Close()
	}
	return errors.Join(a.file.Close(), ignoreAbsent(a.target.dir.Remove(a.name)))
}

type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
