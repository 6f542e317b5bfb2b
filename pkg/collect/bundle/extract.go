package bundle

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// DefaultExtractLimit bounds what Extract writes, in bytes: a bundle's content is
// the node's word, and a few kilobytes of gzip can hold a terabyte of zeros.
const DefaultExtractLimit = 32 << 30

// Extract verifies a bundle as Verify does and writes its files into the new
// folder dir, at most limit bytes of them (0: DefaultExtractLimit). dir must not
// exist. Names that lead out of dir, symbolic links, devices and names that are
// there twice are refused. Files are made with mode 0600, folders with 0700. After
// an error nothing is left of what was written.
func Extract(r io.Reader, dir string, limit int64) (rep *Report, err error) {
	if limit <= 0 {
		limit = DefaultExtractLimit
	}
	if _, err := os.Lstat(dir); err == nil {
		return nil, fmt.Errorf("%s exists: remove it or extract elsewhere", dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// Made beside its final place, so that dir is there only when it is whole.
	tmp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), ".extract-*.partial")
	if err != nil {
		return nil, fmt.Errorf("folder to extract into: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return nil, err
	}
	x := extractor{root: root, left: limit, limit: limit}
	rep, err = read(r, x.visit)
	if cerr := root.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return nil, err
	}
	return rep, nil
}

type extractor struct {
	root        *os.Root
	left, limit int64
}

func (x *extractor) visit(h *tar.Header, name string, content io.Reader) error {
	if h.Typeflag == tar.TypeDir {
		return x.root.MkdirAll(name, 0o700)
	}
	if content == nil {
		return corrupt("%q is neither a file nor a folder, refused", name)
	}
	if h.Size > x.left {
		return fmt.Errorf("the bundle holds more than %d bytes, refused", x.limit)
	}
	x.left -= h.Size
	if dir := path.Dir(name); dir != "." {
		if err := x.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
