package collect

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// maxGlob bounds how many files one pattern stands for.
const maxGlob = 2000

// maxNames bounds how many names of one folder are looked at.
const maxNames = 100_000

// glob is an entry for the files below base that match one of the patterns, as
// filepath.Match has it. Their names in the bundle are prefix and the name below
// base.
func glob(prefix, base string, patterns ...string) entry {
	return globOf(prefix, patterns[0], func(*env) string { return base }, patterns...)
}

// globOf is glob with a folder that depends on the host. pattern is the name of the
// entry, after prefix.
func globOf(prefix, pattern string, base func(*env) string, patterns ...string) entry {
	n := entry{path: prefix + pattern, kind: bundle.SourceFile, timeout: fileTimeout, lane: laneFile}
	n.expand = func(_ context.Context, e *env) ([]entry, error) {
		dir := base(e)
		if dir == "" {
			return nil, absent("the host's configuration names no such folder")
		}
		var out []entry
		seen := map[string]bool{}
		for _, p := range patterns {
			names := e.match(path.Clean(dir), strings.Split(p, "/"))
			for _, name := range names {
				if seen[name] {
					continue
				}
				if len(out) == maxGlob {
					return out, fmt.Errorf("more than %d files match %s%s: the rest is left out", maxGlob, dir, p)
				}
				seen[name] = true
				out = append(out, file(prefix+strings.TrimPrefix(name, dir), name))
			}
		}
		if len(out) == 0 {
			return nil, absent("nothing matches %s%s", dir, strings.Join(patterns, ", "+dir))
		}
		return out, nil
	}
	return n
}

// match returns the files below dir that match the pattern's parts, in order of
// name. A folder is no match. A link in place of a folder is one, if links are
// refused there: to open it will say so.
func (e *env) match(dir string, parts []string) []string {
	f, err := e.open(dir)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			return []string{dir}
		}
		return nil
	}
	// What was read before an error counts.
	names, _ := f.Readdirnames(maxNames)
	_ = f.Close()
	slices.Sort(names)
	var out []string
	for _, name := range names {
		if ok, err := path.Match(parts[0], name); err != nil || !ok {
			continue
		}
		full := path.Join(dir, name)
		if len(parts) > 1 {
			out = append(out, e.match(full, parts[1:])...)
		} else if !e.isDir(full) {
			out = append(out, full)
		}
		if len(out) > maxGlob {
			return out
		}
	}
	return out
}

func (e *env) isDir(path string) bool {
	f, err := e.open(path)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	_ = f.Close()
	return err == nil && info.IsDir()
}
