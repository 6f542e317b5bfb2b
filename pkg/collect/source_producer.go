package collect

import (
	"context"
	"fmt"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// producer is an entry for a program that writes a file: what it says goes to
// prefix+log, the file to prefix+name.
func producer(prefix, log, name string, timeout time.Duration, argv func(tmp string) []string) entry {
	n := entry{path: prefix + "{" + log + "," + name + "}", kind: bundle.SourceCommand, lane: laneNetwork, acts: true}
	n.expand = func(_ context.Context, e *env) ([]entry, error) {
		program := argv("")[0]
		if _, err := e.host.LookPath(program); err != nil {
			return nil, absentError{err.Error()}
		}
		dir, err := e.litter.folder()
		if err != nil {
			return nil, fmt.Errorf("folder for %s on the host: %w", program, err)
		}
		tmp := dir + "/" + name
		made := entry{path: prefix + name, timeout: fileTimeout, bytes: logBytes, src: fileSource{paths: func(*env) []string { return []string{tmp} }}}
		return []entry{command(prefix+log, argv(tmp)...).within(timeout), made}, nil
	}
	return n
}
