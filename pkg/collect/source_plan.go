package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// planSource runs several commands into one file, each under a line that says
// what it is. It fails only if all of them do.
type planSource struct {
	plan func(ctx context.Context, e *env) ([][]string, error)
	each time.Duration
}

// commands is an entry for several commands, each bounded by each.
func commands(path string, each time.Duration, plan func(context.Context, *env) ([][]string, error)) entry {
	return entry{path: path, src: planSource{plan: plan, each: each}}
}

// sequence is commands with fixed command lines.
func sequence(path string, argvs ...[]string) entry {
	return commands(path, defaultTimeout, func(context.Context, *env) ([][]string, error) { return argvs, nil })
}

func (planSource) kind() bundle.Source { return bundle.SourceCommand }

func (p planSource) fetch(ctx context.Context, e *env, out *sink) error {
	argvs, err := p.plan(ctx, e)
	if err != nil {
		return err
	}
	var good int
	var errs []error
	missing := map[string]error{}
	for _, argv := range argvs {
		if ctx.Err() != nil {
			errs = append(errs, fmt.Errorf("%s: not run: %w", argv[0], context.Cause(ctx)))
			break
		}
		if err := e.runnable(argv[0]); err != nil {
			missing[argv[0]] = err
			continue
		}
		if _, err := fmt.Fprintf(out, "### %s\n", strings.Join(argv, " ")); err != nil {
			return err
		}
		_, err := e.host.Run(ctx, host.Command{Argv: argv, Timeout: min(p.each, remaining(ctx)), Stdout: out, Stderr: out})
		if errors.Is(err, host.ErrAbandoned) {
			return err
		}
		if err == nil {
			good++
		} else {
			errs = append(errs, err)
			if _, werr := fmt.Fprintf(out, "### failed: %v\n", err); werr != nil {
				return werr
			}
		}
		if _, err := io.WriteString(out, "\n"); err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return errors.Join(errs...)
	case good > 0:
		return nil
	case len(errs) > 0:
		return errors.Join(errs...)
	}
	for _, err := range missing {
		return err
	}
	return absent("there is nothing to run for it on this host")
}
