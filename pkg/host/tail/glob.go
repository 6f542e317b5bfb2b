package tail

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// expansion is what the patterns match at present.
type expansion struct {
	// files are the names that match, in the patterns' order and sorted within one.
	files []string
	// dirs are the folders in which a name may appear that matters, with the patterns
	// that it would have to match.
	dirs map[string][]string
}

// expand finds what a pattern matches. It opens each folder on the way without
// following links, so that none leads out of the folder that a pattern names.
func (s *Source) expand() (expansion, error) {
	e := expansion{dirs: map[string][]string{}}
	seen := map[string]bool{}
	for _, p := range s.opts.Patterns {
		parts := strings.Split(strings.Trim(path.Clean(p), "/"), "/")
		if err := s.descend(&e, seen, "/", parts); err != nil {
			return e, err
		}
	}
	return e, nil
}

func (s *Source) descend(e *expansion, seen map[string]bool, dir string, parts []string) error {
	part, last := parts[0], len(parts) == 1
	plain := !strings.ContainsAny(part, `*?[\`)
	if plain && !last && s.isDir(path.Join(dir, part)) {
		return s.descend(e, seen, path.Join(dir, part), parts[1:])
	}
	e.dirs[dir] = append(e.dirs[dir], part)
	names, err := s.names(dir, part, plain)
	if err != nil {
		return err
	}
	for _, name := range names {
		full := path.Join(dir, name)
		switch {
		case last && !seen[full]:
			seen[full] = true
			e.files = append(e.files, full)
		case !last && s.isDir(full):
			if err := s.descend(e, seen, full, parts[1:]); err != nil {
				return err
			}
		}
	}
	return nil
}

// names returns the names in dir that match part. A folder that has gone has none.
func (s *Source) names(dir, part string, plain bool) ([]string, error) {
	if plain {
		return []string{part}, nil
	}
	f, err := s.opts.Host.OpenNoFollow(dir)
	if err != nil {
		return nil, ignoreGone(err)
	}
	defer f.Close()
	all, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		ok, err := path.Match(part, name)
		if err != nil {
			return nil, err
		}
		if ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (s *Source) isDir(name string) bool {
	f, err := s.opts.Host.OpenNoFollow(name)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.IsDir()
}

// ignoreGone drops errors that mean that something has gone, or never was.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
