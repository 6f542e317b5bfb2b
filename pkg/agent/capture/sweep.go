package capture

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"
)

// sweep removes from dir the bundle with that name, and its checksum, when it is
// retention old, and what an interrupted capture has left of it. The age is that of
// the file itself, so that it outlives restarts of the agent and a newer bundle is
// never taken for an older one. It returns when to look again; zero means that
// there is nothing to wait for. No capture may be at work meanwhile.
func sweep(dir *os.Root, name string, retention time.Duration, now time.Time) (time.Time, error) {
	due, err := bundleDue(dir, name, retention, now)
	if err != nil {
		return time.Time{}, err
	}
	if !due.IsZero() && due.After(now) {
		return due, removeLeftovers(dir, name, name+checksumSuffix)
	}
	return time.Time{}, discard(dir, name)
}

// bundleDue returns when the bundle is to go; zero when there is none.
func bundleDue(dir *os.Root, name string, retention time.Duration, now time.Time) (time.Time, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	made := info.ModTime()
	if made.After(now) {
		// The clock was set back. The age starts anew, or the bundle might stay for
		// years.
		made = now
		if info.Mode().IsRegular() {
			if err := dir.Chtimes(name, now, now); err != nil {
				return time.Time{}, err
			}
		}
	}
	return made.Add(retention), nil
}

// discard removes the bundle with that name, its checksum, and what an interrupted
// capture has left of it.
func discard(dir *os.Root, name string) error {
	return errors.Join(remove(dir, name), removeLeftovers(dir, name, ""))
}

// removeLeftovers removes what belongs to the bundle with that name, but for the
// bundle itself and keep: unfinished files are named after it.
func removeLeftovers(dir *os.Root, name, keep string) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	var errs []error
	for _, n := range names {
		if n != keep && (strings.HasPrefix(n, name+".") || strings.HasPrefix(n, "."+name)) {
			errs = append(errs, remove(dir, n))
		}
	}
	return errors.Join(errs...)
}

// remove removes a file; that there is none is fine.
func remove(dir *os.Root, name string) error {
	if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
