package collect

import (
	"context"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// firstSource tries its sources until one has something to say. If none has, its
// answer is that of the last that was not absent, or of the first.
type firstSource []source

func (f firstSource) kind() bundle.Source { return f[0].kind() }

func (f firstSource) fetch(ctx context.Context, e *env, out *sink) error {
	var first, failed error
	for _, s := range f {
		out.note(func(s *sink) { s.exit, s.argv, s.from = nil, nil, "" })
		err := s.fetch(ctx, e, out)
		if out.written() > 0 || ctx.Err() != nil {
			return err
		}
		switch {
		case isAbsent(err) && first == nil:
			first = err
		case err != nil && !isAbsent(err):
			failed = err
		case err == nil:
			return nil
		}
	}
	if failed != nil {
		return failed
	}
	return first
}
