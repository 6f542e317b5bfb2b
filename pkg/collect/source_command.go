package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/platform"
)

// commandSource is one program of the host, or the first of several that is
// installed.
type commandSource struct {
	argvs func(*env) [][]string
	// absentOn are exit statuses by which the program says "there is none".
	absentOn []int
	// journal marks journalctl: of a journal any amount is read.
	journal bool
	// asks, if set, is the socket of the daemon without which the program can say
	// nothing.
	asks func(*env) string
	// units, if set, are those without which an empty journal is an absent one.
	units []string
}

// command is an entry for a program's output.
func command(path string, argv ...string) entry {
	return entry{path: path, src: commandSource{argvs: func(*env) [][]string { return [][]string{argv} }}}
}

// firstCommand is an entry for the first of the programs that is installed.
func firstCommand(path string, argvs ...[]string) entry {
	return entry{path: path, src: commandSource{argvs: func(*env) [][]string { return argvs }}}
}

// commandOf is command with arguments that depend on the host.
func commandOf(path string, argv func(*env) []string) entry {
	return entry{path: path, src: commandSource{argvs: func(e *env) [][]string { return [][]string{argv(e)} }}}
}

// noneOn makes the program's exit statuses mean "absent".
func (n entry) noneOn(status ...int) entry {
	c := n.src.(commandSource)
	c.absentOn = status
	n.src = c
	return n
}

// asking makes a missing socket mean "absent": the daemon behind it is not there.
func (n entry) asking(socket func(*env) string) entry {
	c := n.src.(commandSource)
	c.asks = socket
	n.src = c
	return n
}

func (c commandSource) kind() bundle.Source {
	if c.journal {
		return bundle.SourceJournal
	}
	return bundle.SourceCommand
}

func (c commandSource) fetch(ctx context.Context, e *env, out *sink) error {
	argv, err := c.choose(e)
	if err != nil {
		return err
	}
	out.note(func(s *sink) { s.argv = argv })
	if c.journal {
		out.unlimited()
	}
	said := &headWriter{max: 4 << 10}
	res, err := e.host.Run(ctx, host.Command{Argv: argv, Timeout: remaining(ctx), Stdout: out, Stderr: said})
	if res.ExitCode >= 0 {
		out.note(func(s *sink) { s.exit = &res.ExitCode })
	}
	words := strings.TrimSpace(said.String())
	switch {
	case err == nil && out.written() == 0 && c.journal:
		return c.explainEmpty(e)
	case err == nil && out.written() == 0:
		// Some programs say on stderr that there is nothing.
		_, err = io.WriteString(out, said.String())
		return err
	case err == nil:
		return nil
	case errors.Is(err, host.ErrAbsent):
		return absentError{err.Error()}
	case slices.Contains(c.absentOn, res.ExitCode):
		return absent("%s", firstNonEmpty(words, err.Error()))
	case words != "":
		return fmt.Errorf("%w: %s", err, words)
	}
	return err
}

// choose returns the first command line whose program the host has.
func (c commandSource) choose(e *env) ([]string, error) {
	var reasons []string
	for _, argv := range c.argvs(e) {
		if len(argv) == 0 {
			continue
		}
		err := e.runnable(argv[0])
		if err == nil && c.asks != nil {
			err = e.served(c.asks(e))
		}
		if err == nil {
			return argv, nil
		}
		reasons = append(reasons, err.Error())
	}
	if len(reasons) == 0 {
		return nil, absent("there is nothing to run for it on this host")
	}
	return nil, absent("%s", strings.Join(reasons, "; "))
}

// needSystemd are programs that do nothing but ask systemd.
var needSystemd = []string{"systemctl", "systemd-analyze", "networkctl", "timedatectl"}

// runnable says why a program cannot be run on this host, as an absentError.
func (e *env) runnable(program string) error {
	if slices.Contains(needSystemd, program) && !e.host.Exists("/run/systemd/system") {
		return absent("systemd does not run on this host") // sd_booted(3)
	}
	if _, err := e.host.LookPath(program); err != nil {
		return absentError{err.Error()}
	}
	return nil
}

// served says that a daemon's socket is missing, as an absentError. A socket that
// is there and answers nobody is a failure, which only asking shows.
func (e *env) served(socket string) error {
	// A socket cannot be opened, so its folder is read.
	names, err := e.host.ReadDir(filepath.Dir(socket))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, d := range names {
		if d.Name() == filepath.Base(socket) {
			return nil
		}
	}
	return absent("no socket %s", socket)
}

// explainEmpty tells a unit that has said nothing from one that there is not.
func (c commandSource) explainEmpty(e *env) error {
	if len(c.units) == 0 {
		return nil
	}
	for _, unit := range c.units {
		if platform.HasUnit(e.host, unit+".service") {
			return nil
		}
	}
	return absent("no records and no unit file of %s", strings.Join(c.units, ", "))
}

// output runs a command and returns at most 1 MiB of what it says.
func (e *env) output(ctx context.Context, argv ...string) (string, error) {
	var out, said headWriter
	out.max, said.max = 1<<20, 4<<10
	_, err := e.host.Run(ctx, host.Command{Argv: argv, Timeout: remaining(ctx), Stdout: &out, Stderr: &said})
	if errors.Is(err, host.ErrAbsent) {
		return "", absentError{err.Error()}
	}
	if err != nil {
		if s := strings.TrimSpace(said.String()); s != "" {
			err = fmt.Errorf("%w: %s", err, s)
		}
		return "", err
	}
	return out.String(), nil
}

// remaining is how long ctx still lasts.
func remaining(ctx context.Context) time.Duration {
	if t, ok := ctx.Deadline(); ok {
		return max(time.Millisecond, time.Until(t))
	}
	return defaultTimeout
}

// headWriter keeps the first max bytes.
type headWriter struct {
	bytes.Buffer
	max int
}

func (h *headWriter) Write(p []byte) (int, error) {
	if room := h.max - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

func firstNonEmpty(s ...string) string {
	for _, v := range s {
		if v != "" {
			return v
		}
	}
	return ""
}
