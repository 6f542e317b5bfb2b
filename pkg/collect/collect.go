// Package collect makes a node's log bundle: what is collected is a table, how is
// a bounded runner, and the result is one archive with a manifest that says for
// every entry of the table what became of it. All text is redacted before it
// touches the disk.
package collect

import (
	"context"
	"errors"
)

// Collect makes the bundle opts.Output. It returns an error only when there is no
// bundle: then nothing of it is left, and an older bundle is as it was. What
// could not be collected is in Result.Errors and in the bundle. When ctx ends,
// the capture is given up and the error is the context's.
func Collect(ctx context.Context, opts Options) (Result, error) {
	if err := opts.normalize(); err != nil {
		return Result{}, err
	}
	return Result{}, errors.ErrUnsupported
}
