package storage

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// askTime is how long a filesystem may take to answer.
const askTime = 10 * time.Second

// answer is a line of the asking process: the path that answered, or that failed.
type answer struct {
	Path  string `json:"path"`
	Error string `json:"error,omitempty"`
}

// Serve asks the filesystem at each path for its size, all at the same time, and
// writes a JSON line for each that answers. It returns when all have, which may be
// never: it is for a process that can be left alone.
func Serve(out io.Writer, paths []string) error {
	answers := make(chan answer)
	for _, p := range paths {
		go func() {
			a := answer{Path: p}
			if _, err := statfs(p); err != nil {
				a.Error = err.Error()
			}
			answers <- a
		}()
	}
	enc := json.NewEncoder(out)
	for range paths {
		if err := enc.Encode(<-answers); err != nil {
			return fmt.Errorf("tell which filesystem answered: %w", err)
		}
	}
	return nil
}

// asker runs processes that ask filesystems. One that hangs is killed, and if it
// cannot be, the filesystems that it waits for are not asked again before it has
// ended: so there is never more than one process for a filesystem.
type asker struct {
	command func(paths []string) *exec.Cmd
	timeout time.Duration
	stuck   []*asking
}

// asking is a process that did not end, and what it waits for.
type asking struct {
	paths []string
	ended chan struct{}
}

// ask returns the paths that do not answer. Those that answer with an error are there.
func (a *asker) ask(ctx context.Context, paths []string) (hung []string, err error) {
	waiting := map[string]bool{}
	var still []*asking
	for _, s := range a.stuck {
		select {
		case <-s.ended:
		default:
			still = append(still, s)
			for _, p := range s.paths {
				waiting[p] = true
			}
		}
	}
	a.stuck = still
	var free []string
	for _, p := range paths {
		if waiting[p] {
			hung = append(hung, p)
		} else {
			free = append(free, p)
		}
	}
	if len(free) == 0 {
		return hung, nil
	}
	more, err := a.run(ctx, free)
	return append(hung, more...), err
}

func (a *asker) run(ctx context.Context, paths []string) ([]string, error) {
	cmd := a.command(paths)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("ask filesystems: %w", err)
	}
	lines := make(chan string)
	quit := make(chan struct{})
	defer close(quit)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- s.Text():
			case <-quit:
			}
		}
		_ = cmd.Wait() // what it did not say is what counts
	}()
	open := map[string]bool{}
	for _, p := range paths {
		open[p] = true
	}
	deadline := time.NewTimer(a.timeout)
	defer deadline.Stop()
	for {
		select {
		case line, ok := <-lines:
			var got answer
			if ok && json.Unmarshal([]byte(line), &got) == nil {
				delete(open, got.Path)
			}
			if !ok && len(open) > 0 {
				return nil, errors.New("ask filesystems: the process ended without an answer")
			}
			if !ok {
				return nil, nil
			}
			continue
		case <-deadline.C:
		case <-ctx.Done():
		}
		break
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	var hung []string
	for _, p := range paths {
		if open[p] {
			hung = append(hung, p)
		}
	}
	a.stuck = append(a.stuck, &asking{paths: hung, ended: ended})
	if err := ctx.Err(); err != nil {
		return nil, err // it had no time to answer
	}
	return hung, nil
}
