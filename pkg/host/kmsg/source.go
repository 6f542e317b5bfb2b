package kmsg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
	"golang.org/x/sys/unix"
)

// Name is the name of the source, and the key of its checkpoint.
const Name = "kmsg"

// Buffer sizes. The kernel's longest record is 8 KiB (CONSOLE_EXT_LOG_MAX); the rest
// is for kernels to come.
const (
	firstBuffer = 16 << 10
	maxBuffer   = 1 << 20
)

// Options are what a Source needs.
type Options struct {
	// Host is the machine whose /dev/kmsg is read.
	Host *host.Host
	// Checkpoints remembers how far the log was read; nil for nothing remembered.
	Checkpoints host.Checkpoints
	// FromSeq leaves out records with a lower sequence number. 0 begins with the
	// oldest record that the kernel still has, or after the checkpoint.
	FromSeq uint64
}

// Source reads the kernel's log: first what the ring holds of this boot, or of it
// what comes after the checkpoint, then each record as it is logged.
type Source struct {
	opts  Options
	state *host.SourceState
	clock *clock
	open  func() (device, error)
	retry host.Backoff

	boot string
	// next is the sequence number that is due; below it everything was handed on.
	next uint64
	// seen says that a record was read from the open device, or that next comes from a
	// checkpoint: only then is a jump in the sequence a loss.
	seen bool
	// resumed says that next comes from a checkpoint.
	resumed bool
	buf     []byte
}

// New returns a source that has not started.
func New(opts Options) *Source {
	return &Source{
		opts: opts, state: host.NewSourceState(Name), clock: newClock(),
		open: func() (device, error) { return open(opts.Host) },
		buf:  make([]byte, firstBuffer),
	}
}

// Name is "kmsg".
func (s *Source) Name() string { return Name }

// Status implements host.LogSource.
func (s *Source) Status() host.SourceStatus { return s.state.Status() }

// State lets the agent be told of changes.
func (s *Source) State() *host.SourceState { return s.state }

// errHandler marks an error of the handler, which ends Run.
type errHandler struct{ error }

// Run implements host.LogSource.
func (s *Source) Run(ctx context.Context, handle host.Handler) error {
	s.start()
	for {
		err := s.read(ctx, handle)
		var ended errHandler
		switch {
		case errors.As(err, &ended):
			return ended.error
		case ctx.Err() != nil:
			return nil
		}
		if err != nil { // nil: opened anew with a larger buffer
			s.state.SetBlind(fmt.Sprintf("%s: %v", path, err))
			if !s.retry.Wait(ctx) {
				return nil
			}
		}
		s.state.AddRestart()
	}
}

// start finds where to begin.
func (s *Source) start() {
	if boot, err := s.opts.Host.BootID(); err == nil {
		s.boot = boot
	}
	s.next = s.opts.FromSeq
	if s.opts.Checkpoints == nil {
		return
	}
	seq, ok := s.parsePosition(s.opts.Checkpoints.Get(Name))
	if ok && seq+1 >= s.next {
		s.next, s.seen, s.resumed = seq+1, true, true
	}
}

// read opens the log and hands its records on until something fails. It returns nil
// when the log must be opened anew at once.
func (s *Source) read(ctx context.Context, handle host.Handler) error {
	dev, err := s.open()
	if err != nil {
		return err
	}
	defer dev.Close()
	var newest uint64
	idle := func() error {
		s.state.SetUp()
		s.retry.Reset()
		return s.rewound(newest)
	}
	for {
		n, waited, err := dev.next(ctx, s.buf, idle)
		switch {
		case errors.Is(err, unix.EPIPE):
			// The ring overran us; the next record's number tells by how much.
			continue
		case errors.Is(err, unix.EINVAL):
			if len(s.buf) < maxBuffer {
				// The device has already gone past the record: only a new one has it.
				s.buf = make([]byte, 2*len(s.buf))
				return nil
			}
			// Its number will be missing, which counts it as lost.
			continue
		case errors.Is(err, errRewound):
			s.next, s.seen, s.resumed = s.opts.FromSeq, false, false
			return nil
		case err != nil:
			return err
		}
		r, err := Parse(s.buf[:n])
		if err != nil {
			// No kernel writes such a record, and without its number it cannot be
			// placed among the others.
			s.state.AddLost(1)
			continue
		}
		newest = r.Seq
		if err := s.take(r, waited, handle); err != nil {
			return errHandler{err}
		}
	}
}

// errRewound says that the checkpoint lies in a future that this kernel never had.
var errRewound = errors.New("the kernel's log ends before the checkpoint")

// rewound finds a virtual machine that was restored from a snapshot: same boot id,
// but the log ends, at newest, before the checkpoint. Waiting for the sequence
// numbers to catch up would lose everything until then.
func (s *Source) rewound(newest uint64) error {
	if s.resumed && newest > 0 && newest+1 < s.next {
		return errRewound
	}
	return nil
}

// take hands one record on, unless it was handed on before.
func (s *Source) take(r Record, waited bool, handle host.Handler) error {
	if r.Seq < s.next {
		return nil
	}
	if s.seen && r.Seq > s.next {
		s.state.AddLost(r.Seq - s.next)
	}
	rec := s.record(r, waited)
	if err := handle(rec); err != nil {
		return err
	}
	s.next, s.seen = r.Seq+1, true
	s.state.Saw(s.clock.wall())
	if s.opts.Checkpoints != nil {
		s.opts.Checkpoints.Set(Name, rec.Position)
	}
	return nil
}

func (s *Source) record(r Record, waited bool) host.Record {
	return host.Record{
		Source: host.SourceKmsg, Message: r.Message, Priority: r.Priority, Facility: r.Facility,
		Kernel: r.Facility == host.FacilityKernel, At: s.clock.at(r.Monotonic, waited),
		Monotonic: r.Monotonic, Boot: s.boot, Keys: r.Keys,
		Position: "kmsg/" + s.boot + "/" + strconv.FormatUint(r.Seq, 10),
	}
}

// parsePosition returns the sequence number of a position of this boot.
func (s *Source) parsePosition(position string) (uint64, bool) {
	rest, ok := strings.CutPrefix(position, "kmsg/"+s.boot+"/")
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(rest, 10, 63)
	return seq, err == nil
}
