package logtext

import (
	"bufio"
	"context"
	"errors"
	"io"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// maxLine bounds a line, in bytes; what is longer is cut, and reading goes on at the
// next newline.
const maxLine = 1 << 20

// idleTime is how long a pipe must be silent for its last line to be whole.
const idleTime = 50 * time.Millisecond

// Read reads a text to its end and hands its records to handle, each as soon as it is
// whole: when the next line begins, or when nothing more has come for a moment. While
// nothing comes, it calls idle (which may be nil) now and then with how long that has
// been. It returns the first error of handle or idle, or of reading.
//
// A reader that does not return from its Read keeps a goroutine until it does.
func Read(ctx context.Context, in io.Reader, o Options, handle func(host.Record) error, idle func(time.Duration) error) error {
	lines := make(chan string, 64)
	failed := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(lines)
		failed <- split(ctx, in, lines)
	}()

	p := NewParser(o)
	flush := func() error {
		if r := p.Flush(); r != nil {
			return handle(*r)
		}
		return nil
	}
	timer := time.NewTimer(idleTime)
	defer timer.Stop()
	var silent time.Duration
	for {
		var timeout <-chan time.Time
		if len(lines) == 0 {
			timer.Reset(max(idleTime, silent/2))
			timeout = timer.C
		}
		select {
		case text, ok := <-lines:
			if !ok {
				return errors.Join(flush(), <-failed)
			}
			silent = 0
			if r := p.Line(text); r != nil {
				if err := handle(*r); err != nil {
					return err
				}
			}
		case <-timeout:
			if err := flush(); err != nil {
				return err
			}
			silent += max(idleTime, silent/2)
			if idle != nil {
				if err := idle(silent); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// split sends the lines of in.
func split(ctx context.Context, in io.Reader, lines chan<- string) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var text []byte
	for {
		part, err := r.ReadSlice('\n')
		more := errors.Is(err, bufio.ErrBufferFull)
		if n := maxLine - len(text); n > 0 {
			text = append(text, part[:min(len(part), n)]...)
		}
		if more {
			continue
		}
		if len(text) > 0 && (err == nil || errors.Is(err, io.EOF)) {
			if text[len(text)-1] == '\n' {
				text = text[:len(text)-1]
			}
			select {
			case lines <- string(text):
			case <-ctx.Done():
				return nil
			}
		}
		text = text[:0]
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
