package collect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// target is where a bundle comes to lie: its folder, opened once, and its name.
// All work on the folder goes through the open folder, so that nobody who renames
// or links things meanwhile can lead it elsewhere.
type target struct {
	dir  *os.Root
	path string // of the bundle
	base string
}

// openTarget opens the folder of path, and makes it (0700) if it is missing. A
// symbolic link in place of the folder is refused.
func openTarget(path string) (*target, error) {
	dir, base := filepath.Split(filepath.Clean(path))
	if dir == "" {
		dir = "."
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder for the bundle: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("folder for the bundle: %w", err)
	}
	t := &target{dir: root, path: path, base: base}
	if err := t.checkFolder(filepath.Clean(dir)); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if info, err := root.Lstat(base); err == nil && !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is there and not a file: remove it or choose another name", path), root.Close())
	}
	return t, nil
}

// checkFolder makes sure that what was opened is the folder of that name itself.
func (t *target) checkFolder(dir string) error {
	named, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	opened, err := t.dir.Stat(".")
	if err != nil {
		return err
	}
	if !named.IsDir() || !os.SameFile(named, opened) {
		return fmt.Errorf("%s is a symbolic link, refused: name the folder that it leads to", dir)
	}
	return nil
}

const partialSuffix = ".partial"

// tempName is a name for a file that is not yet, or never, the bundle.
func (t *target) tempName(id string) string { return "." + t.base + "." + id + partialSuffix }

// create makes a file that did not exist, mode 0600, and locks it for as long as
// it is open, so that sweep leaves it.
func (t *target) create(name string) (*os.File, error) {
	f, err := t.dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot write here: %w", filepath.Dir(t.path), err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close(), t.dir.Remove(name))
	}
	return f, nil
}

// scratch makes a file without a name.
func (t *target) scratch() (*os.File, error) {
	name := t.tempName(randomID())
	f, err := t.create(name)
	if err != nil {
		return nil, err
	}
	if err := t.dir.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sweep removes what a run that was killed has left of this bundle.
func (t *target) sweep() error {
	d, err := t.dir.Open(".")
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, "."+t.base+".") || !strings.HasSuffix(name, partialSuffix) {
			continue
		}
		f, err := t.dir.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			err = t.dir.Remove(name)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// sumName is the name of the file beside the bundle that holds its hash.
func (t *target) sumName() string { return t.base + ".sha256" }

// place puts the finished file temp in the bundle's place, and its hash beside it.
// An older hash goes first: a bundle without one can be told from a wrong one.
func (t *target) place(temp, sum string) error {
	side := t.tempName(randomID())
	f, err := t.create(side)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s  %s\n", sum, t.base)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		if err = t.dir.Remove(t.sumName()); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err == nil {
		err = t.dir.Rename(temp, t.base)
	}
	if err == nil {
		err = t.dir.Rename(side, t.sumName())
	}
	if err != nil {
		return errors.Join(err, ignoreAbsent(t.dir.Remove(side)))
	}
	return t.syncDir()
}

func (t *target) syncDir() error {
	d, err := t.dir.Open(".")
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) {
		err = nil // some filesystems cannot sync a folder
	}
	return errors.Join(err, d.Close())
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
