package collect

import (
	"context"
	"io"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// funcSource is content that the collector makes itself.
type funcSource struct {
	what string
	// live says that it is about the machine that this process runs on: it has no
	// meaning for a root that is a copy of files.
	live bool
	f    func(ctx context.Context, e *env, w io.Writer) error
}

// function is an entry for content read from the host's files.
func function(path, what string, f func(context.Context, *env, io.Writer) error) entry {
	return entry{path: path, src: funcSource{what: what, f: f}}
}

// probe is an entry for content had by asking around from this machine.
func probe(path, what string, f func(context.Context, *env, io.Writer) error) entry {
	return entry{path: path, src: funcSource{what: what, live: true, f: f}, lane: laneNetwork}
}

func (funcSource) kind() bundle.Source { return bundle.SourceFunction }

func (s funcSource) fetch(ctx context.Context, e *env, out *sink) error {
	out.note(func(o *sink) { o.from = s.what })
	if s.live && !e.live {
		return absent("the root is a copy of files, not a running host")
	}
	return s.f(ctx, e, out)
}

// extraSource is content that the caller has.
type extraSource struct {
	open func() (io.ReadCloser, error)
}

func (extraSource) kind() bundle.Source { return bundle.SourceAPI }

func (s extraSource) fetch(ctx context.Context, _ *env, out *sink) error {
	r, err := s.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(out, ctxReader{ctx, r})
	if cerr := r.Close(); err == nil {
		err = cerr
	}
	return err
}
