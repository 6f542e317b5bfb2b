package collect

import (
	"context"
	"fmt"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// maxGlob bounds how many files one pattern stands for.
const maxGlob = 2000

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
			names, err := e.host.Glob(dir + p)
			if err != nil {
				return nil, err
			}
			for _, name := range names {
				if seen[name] || e.isDir(name) {
					continue
				}
				if len(out) == maxGlob {
					return out, fmt.Errorf("more than %d files match %s%s: the rest is left out", maxGlob, dir, p)
				}
				seen[name] = true
				f := file(prefix+strings.TrimPrefix(name, dir), name)
				f.category, f.bytes, f.timeout = n.category, n.bytes, n.timeout
				out = append(out, f)
			}
		}
		if len(out) == 0 {
			return nil, absent("nothing matches %s%s", dir, strings.Join(patterns, ", "+dir))
		}
		return out, nil
	}
	return n
}

// isDir looks at the name itself: a link to a folder is left for openRegular to
// refuse.
func (e *env) isDir(path string) bool {
	f, err := e.host.OpenNoFollow(path)
	if err != nil {
		return false
	}
	info, err := f.Stat()
	_ = f.Close()
	return err == nil && info.IsDir()
}
