package kernel

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// pstoreKey is where the check remembers which crashes were told.
const pstoreKey = "pstore"

// Bounds of what is read and remembered.
const (
	pstoreFile = 1 << 20
	pstoreTold = 32
)

// pstorePatterns are where the last words of a kernel lie: in the platform's own
// store, or where systemd-pstore.service moves them at boot.
var pstorePatterns = []string{"/sys/fs/pstore/dmesg-*", "/var/lib/systemd/pstore/*/dmesg*", "/var/lib/systemd/pstore/*/*/dmesg*"}

// pstore finds kernel panics that are over: nothing else survives the boot. Each is
// told once, and never holds against the boot that follows.
type pstore struct {
	check.Info
	opts Options
	told []string // found by the last run, and handed on since
}

func newPstore(o Options) *pstore {
	return &pstore{Info: info("pstore", time.Hour, "KernelPanic"), opts: o}
}

// crash is the text of one crash, of which a store may hold several files.
type crash struct {
	dir  string
	text string
	at   time.Time
}

// id is the same for the same crash wherever it was moved.
func (c crash) id() string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, c.text)
	return fmt.Sprintf("%016x", h.Sum64())
}

// Run implements check.Check.
func (c *pstore) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	told := strings.Fields(c.opts.Memory.Get(pstoreKey))
	if len(c.told) > 0 {
		told = append(told, c.told...)
		told = told[max(0, len(told)-pstoreTold):]
		c.opts.Memory.Set(pstoreKey, strings.Join(told, " "))
		c.told = nil
	}
	crashes, err := readPstore(h)
	if err != nil {
		return nil, err
	}
	var fs []health.Finding
	fs, c.told = checkPstore(c.opts, crashes, told)
	return fs, nil
}

func readPstore(h *host.Host) ([]crash, error) {
	var crashes []crash
	for _, pattern := range pstorePatterns {
		names, err := h.Glob(pattern)
		if err != nil {
			return nil, err
		}
		slices.Reverse(names) // parts are numbered from the end of the log
		byDir := map[string]int{}
		for _, name := range names {
			text, at, err := readCrash(h, name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			i, ok := byDir[path.Dir(name)]
			if !ok {
				i = len(crashes)
				byDir[path.Dir(name)] = i
				crashes = append(crashes, crash{dir: path.Dir(name), at: at})
			}
			crashes[i].text += text
		}
	}
	return crashes, nil
}

func readCrash(h *host.Host, name string) (string, time.Time, error) {
	f, err := h.OpenNoFollow(name)
	if err != nil {
		return "", time.Time{}, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", time.Time{}, err
	}
	b, err := io.ReadAll(io.LimitReader(f, pstoreFile))
	return string(b), st.ModTime(), err
}

// checkPstore returns a finding for each panic that was not told, and the ids of
// those.
func checkPstore(o Options, crashes []crash, told []string) (fs []health.Finding, ids []string) {
	for _, c := range crashes {
		p, ok := parsePanic(c.text)
		if !ok || slices.Contains(told, c.id()) || slices.Contains(ids, c.id()) {
			continue
		}
		ids = append(ids, c.id())
		f := panicFinding(o, p, "found in "+c.dir)
		f.At, f.Position = c.at, "pstore/"+c.id()
		fs = append(fs, f)
	}
	return fs, ids
}

// panicFinding tells of a panic of an earlier boot. One that somebody asked for is
// kept in the history only.
func panicFinding(o Options, p panicked, where string) health.Finding {
	f := check.Finding(o.Catalog, "KernelPanic", "", fmt.Sprintf("The kernel panicked before the last reboot: %s.", p.reason))
	if p.deliberate {
		f.Severity = health.Info
		f.Message = "Somebody made the kernel crash by hand (sysrq) before the last reboot."
	}
	f.Evidence = fmt.Sprintf("%s (%s)", p.reason, where)
	f.Fields = map[string]any{"reason": p.reason, "deliberate": p.deliberate, "previous_boot": true}
	return f
}
