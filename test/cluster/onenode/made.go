package onenode

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// What up makes outside the state folder is noted before it is made, one path a
// line, so that down can take away that and nothing else.

func (c *Cluster) madeFile() string { return c.run("made") }

func (c *Cluster) noteMade(path string) error {
	f, err := os.OpenFile(c.madeFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, path)
	return errors.Join(err, f.Close())
}

// makeDir makes a folder of the machine, and its parents, unless they exist.
func (c *Cluster) makeDir(path string) error {
	var missing []string
	for p := path; p != "/"; p = p[:max(1, strings.LastIndexByte(p, '/'))] {
		if _, err := os.Stat(p); err == nil {
			break
		}
		missing = append(missing, p)
	}
	for _, p := range slices.Backward(missing) {
		if err := c.noteMade(p); err != nil {
			return err
		}
		if err := os.Mkdir(p, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// removeMade removes what is noted, the latest first. The two folders that
// journald fills go with their content, every other one only when it is empty: what
// is in it otherwise is not ours.
func (c *Cluster) removeMade() error {
	f, err := os.Open(c.madeFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var paths []string
	for s := bufio.NewScanner(f); s.Scan(); {
		paths = append(paths, s.Text())
	}
	var errs []error
	for _, path := range slices.Backward(paths) {
		remove := os.Remove
		if path == journalRuntime || path == "/run/log/journal" {
			remove = os.RemoveAll
		}
		err := remove(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
