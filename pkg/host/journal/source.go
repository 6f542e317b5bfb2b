// Package journal reads the journal of the host's systemd through the host's own
// journalctl, which alone is sure to know the journal's format. One process follows
// all units that are wanted.
package journal

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// Name is the name of the source, and the key of its checkpoint.
const Name = "journal"

// Timing of the follower.
const (
	// forever is the follower's time limit, since host.Command has one.
	forever = 10 * 365 * 24 * time.Hour
	// silence is how long the follower may say nothing before the journal is asked
	// whether there was something to say.
	silence = 30 * time.Minute
	// steady is how long a follower must live for its death to be told from a failure
	// to start.
	steady = time.Minute
)

// Options are what a Source needs.
type Options struct {
	// Host is the machine whose journal is read.
	Host *host.Host
	// Units are the units whose words are wanted, and about which systemd's words are,
	// by full name ("kubelet.service"). They are matched as journalctl -u does: by the
	// unit that journald saw, never by what the writer calls itself.
	Units []string
	// Kernel asks for the kernel's records too, for hosts where /dev/kmsg is not to be
	// had.
	Kernel bool
	// Checkpoints remembers how far the journal was read; nil for nothing remembered.
	Checkpoints host.Checkpoints
	// Args are added to journalctl's, such as "--directory=/path" for a journal that
	// is not the host's own.
	Args []string
}

// matches are the arguments that select the entries wanted.
func (o *Options) matches() []string {
	var own, managers, args []string
	for _, u := range o.Units {
		own = append(own, "_SYSTEMD_UNIT="+u)
		managers = append(managers, "UNIT="+u)
	}
	if len(own) > 0 {
		args = append(append(own, "+", "_PID=1"), managers...)
	}
	if o.Kernel {
		if len(args) > 0 {
			args = append(args, "+")
		}
		args = append(args, "_TRANSPORT=kernel")
	}
	return args
}

// runner runs programs of the host; host.Host is one.
type runner interface {
	Run(context.Context, host.Command) (host.Result, error)
}

// Source follows the journal: first what it holds of this boot, or what comes after
// the checkpoint, then each entry as it is written.
type Source struct {
	opts  Options
	state *host.SourceState
	run   runner
	retry host.Backoff

	silence time.Duration

	// last is the cursor of the entry that was handed on last.
	mu   sync.Mutex
	last string
}

// New returns a source that has not started.
func New(opts Options) *Source {
	return &Source{opts: opts, state: host.NewSourceState(Name), run: opts.Host, silence: silence}
}

// Name is "journal".
func (s *Source) Name() string { return Name }

// Status implements host.LogSource.
func (s *Source) Status() host.SourceStatus { return s.state.Status() }

// State lets the agent be told of changes.
func (s *Source) State() *host.SourceState { return s.state }

// Run implements host.LogSource.
func (s *Source) Run(ctx context.Context, handle host.Handler) error {
	if len(s.opts.matches()) == 0 {
		return errors.New("journal: no units to follow")
	}
	if s.opts.Checkpoints != nil {
		s.last, _ = strings.CutPrefix(s.opts.Checkpoints.Get(Name), "journal/")
	}
	for {
		start := time.Now()
		f := follower{s: s, handle: handle}
		why := s.blind(ctx)
		if why == "" {
			s.state.SetUp()
			why = f.follow(ctx)
		}
		switch {
		case f.handlerErr != nil:
			return f.handlerErr
		case ctx.Err() != nil:
			return nil
		}
		if why != "" {
			s.state.SetBlind(why)
		}
		if time.Since(start) > steady {
			s.retry.Reset()
		}
		if !s.retry.Wait(ctx) {
			return nil
		}
		s.state.AddRestart()
	}
}

// journalctl returns the command line that all calls begin with. --all, because
// fields longer than 4 KiB are null without it.
func (s *Source) journalctl(args ...string) []string {
	argv := append([]string{"journalctl", "--output=json", "--all", "--no-pager"}, s.opts.Args...)
	return append(argv, args...)
}

func (s *Source) position() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
