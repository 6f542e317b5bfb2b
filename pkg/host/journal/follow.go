package journal

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// follower reads the journal once, until its journalctl ends.
type follower struct {
	s          *Source
	handle     host.Handler
	handlerErr error

	dec       decoder
	conv      converter
	resumedAt cursor // the entry that the run begins with and that was handed on before
	resumed   bool
}

// follow hands on what came after the entry that was read last, and then runs
// journalctl until it ends. It says in words why that was; "" when it was ended to be
// started anew.
func (f *follower) follow(ctx context.Context) string {
	s := f.s
	boot, err := s.opts.Host.BootID()
	if err != nil {
		return err.Error()
	}
	boot = strings.ReplaceAll(boot, "-", "")
	begin := "--boot"
	if s.last != "" && s.resume(ctx) {
		if last, _ := parseCursor(s.last); last.boot != boot {
			// --follow shows this boot only, whatever else it is told (systemd 252).
			if err := f.run(ctx, "--cursor="+s.last); err != nil {
				return err.Error()
			}
		}
		if last, _ := parseCursor(s.last); last.boot == boot {
			begin = "--cursor=" + s.last
		}
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var restarting bool
	var watching sync.WaitGroup
	watching.Go(func() { restarting = f.watch(ctx, cancel) })
	err = f.run(ctx, begin, "--follow", "--no-tail")
	cancel()
	watching.Wait()
	switch {
	case restarting:
		return ""
	case err == nil:
		return "journalctl --follow ended by itself"
	}
	return err.Error()
}

// run runs journalctl once, from begin on. That is never --after-cursor: when the
// entry is gone, it leaves out the one after the gap as well (systemd 252). So the
// entry itself comes first if it is still there, and is left out here.
func (f *follower) run(ctx context.Context, begin string, args ...string) error {
	s := f.s
	cursor, _ := strings.CutPrefix(begin, "--cursor=")
	f.resumedAt, f.resumed = parseCursor(cursor)
	argv := s.journalctl("--output-fields="+outputFields, begin)
	argv = append(append(argv, args...), s.opts.matches()...)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var complaint tail
	out := &lines{
		handle:  func(line []byte) error { return f.take(ctx, line, cancel) },
		tooLong: func() { s.state.AddLost(1) },
	}
	_, err := s.run.Run(ctx, host.Command{Argv: argv, Stdout: out, Stderr: &complaint, Timeout: forever})
	if c := complaint.String(); err != nil && c != "" {
		return fmt.Errorf("%w: %s", err, c)
	}
	return err
}

// take hands on one line of journalctl.
func (f *follower) take(ctx context.Context, line []byte, cancel func()) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !isObject(line) {
		return nil
	}
	var e entry
	if err := f.dec.decode(line, &e); err != nil || len(e.cursor) == 0 {
		f.s.state.AddLost(1)
		return nil
	}
	if cap(f.dec.scratch) > keepBuffer {
		f.dec.scratch = nil // e still holds what lies in it
	}
	if f.resumed {
		f.resumed = false
		if c, ok := parseCursor(string(e.cursor)); ok && c.same(f.resumedAt) {
			return nil
		}
	}
	r := f.conv.record(&e)
	if err := f.handle(r); err != nil {
		f.handlerErr = err
		cancel()
		return err
	}
	f.s.state.Saw(time.Now())
	f.s.mu.Lock()
	f.s.last = r.Position[len("journal/"):]
	f.s.mu.Unlock()
	if f.s.opts.Checkpoints != nil {
		f.s.opts.Checkpoints.Set(Name, r.Position)
	}
	return nil
}

// watch ends a follower that has been silent while the journal grew, and says whether
// it did.
func (f *follower) watch(ctx context.Context, cancel func()) bool {
	t := time.NewTicker(f.s.silence)
	defer t.Stop()
	before := f.s.position()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-t.C:
		}
		now := f.s.position()
		if now == before && f.s.stuck(ctx, now) && f.s.position() == now {
			cancel()
			return true
		}
		before = now
	}
}
