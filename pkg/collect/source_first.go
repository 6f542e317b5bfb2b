package collect

import (
	"context"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// firstSource tries its sources until one has something to say. If none has, its
// answer is that of the last that was not absent, or what all of them lack.
type firstSource []source

func (f firstSource) kind() bundle.Source { return f[0].kind() }

func (f firstSource) fetch(ctx context.Context, e *env, out *sink) error {
	var failed error
	var reasons []string
	for _, src := range f {
		out.note(func(s *sink) { s.exit, s.argv, s.from, s.kind = nil, nil, "", src.kind() })
		err := src.fetch(ctx, e, out)
		if out.written() > 0 || ctx.Err() != nil {
			return err
		}
		switch {
		case err == nil:
			return nil
		case isAbsent(err):
			reasons = append(reasons, err.Error())
		default:
			failed = err
		}
	}
	if failed != nil {
		return failed
	}
	return absent("%s", strings.Join(reasons, "; "))
}
