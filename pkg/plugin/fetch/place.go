package fetch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// File is a file that takes its name only when it is whole.
type File struct {
	*os.File
	path    string
	replace bool
	ended   bool
}

// Create opens a new file beside path, named path.<random>.partial, readable by its
// owner only: a bundle holds what is on a node. With replace, Commit replaces what
// has the name path by then.
func Create(path string, replace bool) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return nil, &LocalError{Err: err}
	}
	return &File{File: f, path: path, replace: replace}, nil
}

// Commit brings the file to the disk and gives it its name, at once or not at all.
// An error that is fs.ErrExist says that the name is taken.
func (f *File) Commit() error {
	f.ended = true
	err := f.Sync()
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = f.rename()
	}
	if err != nil {
		return errors.Join(&LocalError{Err: err}, remove(f.Name()))
	}
	syncDir(filepath.Dir(f.path))
	return nil
}

func (f *File) rename() error {
	if f.replace {
		return os.Rename(f.Name(), f.path)
	}
	// A hard link never replaces a file, not even one that was made this moment.
	err := os.Link(f.Name(), f.path)
	if err == nil {
		return os.Remove(f.Name())
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: %w", f.path, fs.ErrExist)
	}
	// This filesystem has no hard links.
	if _, err := os.Lstat(f.path); err == nil {
		return fmt.Errorf("%s: %w", f.path, fs.ErrExist)
	}
	return os.Rename(f.Name(), f.path)
}

// Discard removes the file, unless Commit was called.
func (f *File) Discard() error {
	if f.ended {
		return nil
	}
	f.ended = true
	return errors.Join(f.Close(), remove(f.Name()))
}

func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// syncDir makes a new name last through a power cut, where the platform can: the
// bytes are safe already, so that a failure is none of the caller's.
func syncDir(dir string) {
	if runtime.GOOS == "windows" {
		return
	}
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}
