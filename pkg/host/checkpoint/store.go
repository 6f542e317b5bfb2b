// Package checkpoint remembers on disk how far each log has been read, so that after
// a restart reading goes on where it stopped. Positions carry the boot they belong
// to (see host.Record.Position); whoever reads one checks it.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// fileName is the store's file in the state directory.
const fileName = "checkpoints.json"

// version is that of the file's format.
const version = 1

// Timing of writes.
const (
	// interval is the least time between two writes.
	interval = time.Second
	// retryInterval is the time between two attempts while writing fails.
	retryInterval = 30 * time.Second
)

// maxFile bounds what is read at the start.
const maxFile = 1 << 20

type file struct {
	Version   int               `json:"version"`
	Positions map[string]string `json:"positions"`
}

// Options are what a Store needs besides its folder.
type Options struct {
	// BeforeWrite, if set, runs before positions reach the disk, and must bring to the
	// disk whatever the records up to them led to. When it fails the positions are
	// not written, and these records will be read again after a crash: so nothing is
	// lost, and Record.Position keeps anything from being told twice.
	BeforeWrite func() error
	// OnError, if set, is told when writing begins to fail, and with nil when it works
	// again.
	OnError func(error)
}

// Store implements host.Checkpoints in a state directory. What cannot be written is
// kept in memory. It is safe for concurrent use.
type Store struct {
	path string
	opts Options

	interval, retryInterval time.Duration

	mu        sync.Mutex
	positions map[string]string
	timer     *time.Timer // runs while there is something to write
	closed    bool
	err       error

	writing sync.Mutex
}

// Open returns the store in dir, which it creates (mode 0700) if it can. The store is
// usable even when the error is not nil: the error says why nothing is remembered
// from before, or why nothing will be. A corrupt file is kept beside the new one with
// the suffix ".corrupt".
func Open(dir string, opts Options) (*Store, error) {
	s := &Store{
		path: filepath.Join(dir, fileName), opts: opts, positions: map[string]string{},
		interval: interval, retryInterval: retryInterval,
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, fmt.Errorf("checkpoints are kept in memory only: %w", err)
	}
	f, err := load(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, nil
	case err != nil:
		if errors.Is(err, errCorrupt) {
			_ = os.Rename(s.path, s.path+".corrupt")
		}
		return s, fmt.Errorf("no checkpoints, logs are read from this boot's start: %w", err)
	}
	maps.Copy(s.positions, f.Positions)
	return s, nil
}

var errCorrupt = errors.New("not a checkpoint file")

func load(path string) (file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return file{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return file{}, fmt.Errorf("%s: %w", path, errCorrupt)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return file{}, fmt.Errorf("%s: %w: %w", path, errCorrupt, err)
	}
	if f.Version != version {
		return file{}, fmt.Errorf("%s: version %d, want %d: %w", path, f.Version, version, errCorrupt)
	}
	return f, nil
}

// Get implements host.Checkpoints.
func (s *Store) Get(source string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.positions[source]
}

// Set implements host.Checkpoints. The position reaches the disk within a second or
// so; an empty one forgets the source.
func (s *Store) Set(source, position string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if position == "" {
		delete(s.positions, source)
	} else {
		s.positions[source] = position
	}
	s.arm()
}

// arm sees to it that a write is due. The caller holds mu.
func (s *Store) arm() {
	if s.timer != nil || s.closed {
		return
	}
	wait := s.interval
	if s.err != nil {
		wait = s.retryInterval
	}
	s.timer = time.AfterFunc(wait, func() { _ = s.Flush() })
}

// Err says why positions do not reach the disk at present; nil when they do.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Flush writes what was set so far.
func (s *Store) Flush() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	positions := maps.Clone(s.positions)
	s.mu.Unlock()

	err := s.write(positions)
	s.mu.Lock()
	changed := (err == nil) != (s.err == nil)
	s.err = err
	if err != nil {
		s.arm()
	}
	s.mu.Unlock()
	if changed && s.opts.OnError != nil {
		s.opts.OnError(err)
	}
	return err
}

func (s *Store) write(positions map[string]string) error {
	if s.opts.BeforeWrite != nil {
		if err := s.opts.BeforeWrite(); err != nil {
			return err
		}
	}
	b, err := json.Marshal(file{Version: version, Positions: positions})
	if err != nil {
		return err
	}
	return host.ReplaceFile(s.path, append(b, '\n'))
}

// Close writes what was set and stops the store's timer. Nothing that is set
// afterwards is written.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	return s.Flush()
}
