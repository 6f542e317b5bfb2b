package journal

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// probeTimeout bounds the questions that are asked of journalctl before following.
// A journal of many gigabytes on a slow disk takes seconds.
const probeTimeout = time.Minute

// newest returns the cursor of one entry that args select, "" when there is none, and
// what journalctl complained about.
func (s *Source) newest(ctx context.Context, args ...string) (string, string, error) {
	var found string
	var d decoder
	out := &lines{tooLong: func() {}, handle: func(line []byte) error {
		var e entry
		if found == "" && d.decode(line, &e) == nil {
			found = string(e.cursor)
		}
		return nil
	}}
	var complaint tail
	argv := append(s.journalctl("--lines=1", "--output-fields=_BOOT_ID"), args...)
	_, err := s.run.Run(ctx, host.Command{Argv: argv, Stdout: out, Stderr: &complaint, Timeout: probeTimeout})
	return found, complaint.String(), err
}

// blind asks whether journalctl answers at all, and says in words why not. A
// journalctl that is older than the journal's format, or looks in the wrong place,
// succeeds and prints nothing.
func (s *Source) blind(ctx context.Context) string {
	found, complaint, err := s.newest(ctx)
	switch {
	case err != nil && complaint != "":
		return fmt.Sprintf("%v: %s", err, complaint)
	case err != nil:
		return err.Error()
	case found != "" && strings.Contains(complaint, "unsupported feature"):
		return "journalctl leaves files out: " + complaint
	case found != "":
		return ""
	}
	files := s.files()
	if files == 0 {
		return "no journal under /run/log/journal or /var/log/journal: is systemd-journald running?"
	}
	why := fmt.Sprintf("journalctl shows no entry of %d journal files: is it older than the systemd-journald that writes them?", files)
	if complaint != "" {
		why += " It says: " + complaint
	}
	return why
}

// files counts the host's journal files.
func (s *Source) files() int {
	n := 0
	for _, dir := range []string{"/run/log/journal", "/var/log/journal"} {
		machines, err := s.opts.Host.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, m := range machines {
			files, _ := s.opts.Host.ReadDir(path.Join(dir, m.Name()))
			for _, f := range files {
				if strings.HasSuffix(f.Name(), ".journal") {
					n++
				}
			}
		}
	}
	return n
}

// resume finds out what became of the entry that was read last. It counts what was
// vacuumed since, and returns false when the journal cannot be entered there, and
// must be read from this boot's start: it ends before that entry, because it was
// emptied and the clock stepped back.
func (s *Source) resume(ctx context.Context) bool {
	last, ok := parseCursor(s.last)
	if !ok {
		return false
	}
	found, complaint, err := s.newest(ctx, "--cursor="+s.last)
	if err != nil {
		// An unreadable journal is blind's business; an unusable cursor is ours.
		return !strings.Contains(complaint, "ursor")
	}
	next, ok := parseCursor(found)
	if !ok {
		return false
	}
	if !next.same(last) {
		s.state.AddLost(last.lost(next))
	}
	return true
}

// stuck says that the journal has wanted entries that the follower did not hand on.
func (s *Source) stuck(ctx context.Context, handled string) bool {
	args := s.opts.matches()
	if handled == "" {
		args = append(args, "--boot") // nothing else was asked for
	}
	found, _, err := s.newest(ctx, args...)
	if err != nil || found == "" {
		return false
	}
	newest, ok1 := parseCursor(found)
	last, ok2 := parseCursor(handled)
	return ok1 && !(ok2 && last.same(newest))
}

// isObject tells an entry from what else journalctl prints.
func isObject(line []byte) bool { return bytes.HasPrefix(line, []byte{'{'}) }
