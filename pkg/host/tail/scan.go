package tail

import (
	"errors"
	"io/fs"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
	"golang.org/x/sys/unix"
)

// rescan brings what is watched and open in line with what the patterns match.
// Folders are watched before they are listed, so that nothing appears in between.
func (s *Source) rescan(handle host.Handler) error {
	for range 10 { // until no folder has appeared while we looked
		e, err := s.expand()
		if err != nil {
			return err
		}
		s.wanted = e.dirs
		added, err := s.watchDirs(e.dirs)
		if err != nil {
			return err
		}
		if added {
			continue
		}
		for _, name := range e.files {
			if err := s.adopt(name, handle); err != nil {
				return err
			}
		}
		s.settled()
		return nil
	}
	return errors.New("folders come and go faster than they can be watched")
}

// settled says how the source is doing after everything was opened.
func (s *Source) settled() {
	s.started = true
	if len(s.files) == 0 {
		s.state.SetAbsent()
	} else {
		s.state.SetUp()
	}
}

// watchDirs watches exactly the folders given, and says whether there was a new one.
func (s *Source) watchDirs(dirs map[string][]string) (added bool, err error) {
	have := map[string]int32{}
	for wd, dir := range s.dirs {
		have[dir] = wd
	}
	for dir := range dirs {
		f, err := s.opts.Host.OpenNoFollow(dir)
		if errors.Is(err, fs.ErrNotExist) {
			added = true // gone again: look where its parent is
			continue
		}
		if err != nil {
			return added, err
		}
		wd, err := s.notify.add(f, dirMask)
		f.Close()
		if errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			return added, err
		}
		if old, ok := have[dir]; !ok || old != wd {
			added = true
		}
		s.dirs[wd] = dir
	}
	for wd, dir := range s.dirs {
		if _, ok := dirs[dir]; !ok {
			s.notify.remove(wd)
			delete(s.dirs, wd)
		}
	}
	return added, nil
}

// adopt opens the file that has a name now, unless it is open under it, and reads it.
func (s *Source) adopt(name string, handle host.Handler) error {
	f, err := s.opts.Host.OpenNoFollow(name)
	if err != nil {
		return nil // gone again, a link, or not ours to read
	}
	i, info, err := statID(f)
	if err != nil {
		f.Close()
		return nil
	}
	old := s.files[name]
	if old != nil && old.id.dev == i.dev && old.id.ino == i.ino {
		f.Close()
		return nil
	}
	if s.isOpen(i) || len(s.byWD) >= maxFiles {
		f.Close()
		return nil
	}
	nf := &file{f: f, path: name, id: i, behind: old, mtime: info.ModTime()}
	if old == nil {
		if nf.behind, err = s.begin(nf, info); err != nil {
			f.Close()
			return err
		}
	}
	if s.started {
		nf.mtime = time.Time{} // it appeared while we looked on
	}
	if nf.wd, err = s.notify.add(f, fileMask); err != nil {
		f.Close()
		return err
	}
	s.files[name], s.byWD[nf.wd] = nf, nf
	return s.read(nf, handle)
}

func (s *Source) isOpen(i id) bool {
	for _, f := range s.byWD {
		if f.id.dev == i.dev && f.id.ino == i.ino {
			return true
		}
	}
	return false
}
