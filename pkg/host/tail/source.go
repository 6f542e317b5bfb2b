// Package tail follows log files by inotify, through rotation by rename and by
// copytruncate, and finds files and folders that appear later. It follows no symbolic
// link: pods can plant them under /var/log.
package tail

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
	"golang.org/x/sys/unix"
)

// maxFiles bounds the files that are followed at a time.
const maxFiles = 256

// Options are what a Source needs.
type Options struct {
	// Name is the source's name.
	Name string
	// Host is the machine whose files are read.
	Host *host.Host
	// Patterns are absolute names of the host, in path.Match's syntax by component.
	// Each file that matches is followed, also those that appear later. They must lead
	// through no symbolic link: /var/log/pods, not /var/log/containers.
	Patterns []string
	// Checkpoints remembers how far each file was read, under "file:" and its name;
	// nil for nothing remembered.
	Checkpoints host.Checkpoints
}

// Source follows files: at the first start from near their ends, leaving out what is
// from before this boot; after the checkpoint later on.
type Source struct {
	opts  Options
	state *host.SourceState
	retry host.Backoff

	boot   string
	booted time.Time
	zone   *time.Location
	// started says that every file that was there at the start is open: what appears
	// later is new, and read from its first byte.
	started bool

	notify *inotify
	files  map[string]*file    // by name
	byWD   map[int32]*file     // every open file
	dirs   map[int32]string    // watched folders
	wanted map[string][]string // what may appear in them
	buf    []byte
}

// New returns a source that has not started.
func New(opts Options) *Source {
	if opts.Checkpoints == nil {
		opts.Checkpoints = memory{}
	}
	return &Source{opts: opts, state: host.NewSourceState(opts.Name), buf: make([]byte, 32<<10)}
}

// Name is the name that the source was given.
func (s *Source) Name() string { return s.opts.Name }

// Status implements host.LogSource. While no file matches, the source is absent.
func (s *Source) Status() host.SourceStatus { return s.state.Status() }

// State lets the agent be told of changes.
func (s *Source) State() *host.SourceState { return s.state }

// errHandler marks an error of the handler, which ends Run.
type errHandler struct{ error }

// Run implements host.LogSource.
func (s *Source) Run(ctx context.Context, handle host.Handler) error {
	for _, p := range s.opts.Patterns {
		if _, err := path.Match(p, ""); err != nil || !path.IsAbs(p) {
			return fmt.Errorf("files to follow: %q is not an absolute pattern", p)
		}
	}
	s.boot, _ = s.opts.Host.BootID()
	s.booted, _ = s.opts.Host.BootTime()
	s.zone = hostZone(s.opts.Host)
	for {
		err := s.follow(ctx, handle)
		var ended errHandler
		switch {
		case errors.As(err, &ended):
			return ended.error
		case ctx.Err() != nil:
			return nil
		}
		s.state.SetBlind(err.Error())
		if !s.retry.Wait(ctx) {
			return nil
		}
		s.state.AddRestart()
	}
}

// follow reads until something fails.
func (s *Source) follow(ctx context.Context, handle host.Handler) error {
	n, err := newInotify()
	if err != nil {
		return err
	}
	s.notify, s.files, s.byWD, s.dirs = n, map[string]*file{}, map[int32]*file{}, map[int32]string{}
	defer func() {
		for _, f := range s.byWD {
			f.f.Close()
		}
		n.close()
	}()
	if err := s.rescan(handle); err != nil {
		return err
	}
	for {
		events, err := n.wait(ctx)
		if err != nil {
			return err
		}
		s.retry.Reset()
		if err := s.handle(events, handle); err != nil {
			return err
		}
	}
}

// handle acts on events: files that grew are read, once, and the patterns are
// expanded anew if a name appeared that they may match.
func (s *Source) handle(events []event, handle host.Handler) error {
	rescan := false
	grown := map[*file]bool{}
	for _, e := range events {
		switch f := s.byWD[e.wd]; {
		case e.mask&unix.IN_Q_OVERFLOW != 0:
			rescan = true
			for _, f := range s.byWD {
				grown[f] = true
			}
		case f != nil:
			grown[f] = true
		case e.mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_IGNORED) != 0:
			delete(s.dirs, e.wd)
			rescan = true
		default:
			rescan = rescan || s.wants(s.dirs[e.wd], e.name)
		}
	}
	for f := range grown {
		if err := s.read(f, handle); err != nil {
			return err
		}
	}
	if rescan {
		return s.rescan(handle)
	}
	return nil
}

func (s *Source) wants(dir, name string) bool {
	for _, p := range s.wanted[dir] {
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}
