package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// bootKey is where the check remembers which boot it has judged.
const bootKey = "boot"

// reboot finds that the machine came down without being told to: the boot id is
// another than the one remembered, and the last boot's journal does not end with an
// orderly shutdown. The first run on a machine remembers, and finds nothing.
type reboot struct {
	check.Info
	opts    Options
	journal func(ctx context.Context, h *host.Host, boot string) (lastBoot, error)
	// judged is the boot that the last run judged, and whose finding was handed on since.
	judged string
}

func newReboot(o Options) *reboot {
	return &reboot{
		Info: info("reboot", 5*time.Minute, "UnexpectedReboot", "KernelPanic"), opts: o,
		journal: func(ctx context.Context, h *host.Host, boot string) (lastBoot, error) {
			return readLastBoot(ctx, h, boot)
		},
	}
}

// lastBoot is the end of a boot in the journal.
type lastBoot struct {
	// system are the last lines of systemd, journald and systemd-shutdown, and kernel
	// those of the kernel itself, as journalctl --output=short-unix prints them. Both
	// are empty when the journal does not reach back so far.
	system, kernel string
}

// Run implements check.Check.
func (c *reboot) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	boot, err := h.BootID()
	if err != nil {
		return nil, err
	}
	if c.judged == boot {
		c.opts.Memory.Set(bootKey, boot)
	}
	before := c.opts.Memory.Get(bootKey)
	if before == "" || before == boot {
		if before == "" {
			c.opts.Memory.Set(bootKey, boot)
		}
		return nil, nil
	}
	end, err := c.journal(ctx, h, before)
	if err != nil {
		return nil, err
	}
	c.judged = boot
	return checkReboot(c.opts, before, boot, end), nil
}

// orderly are the words with which an orderly shutdown ends: systemd's last targets,
// and what systemd-shutdown says when it has taken over.
var orderly = regexp.MustCompile(`(?i)reached target (?:\S+ - )?(?:system )?(?:shutdown|reboot|power[- ]?off|halt|kexec|final step|late shutdown services)|: shutting down\.|systemd-shutdown\[|journald?(?:\[\d+\])?: journal stopped|received sigterm from pid 1 \(systemd-shutdow`)

// checkReboot judges the end of the boot before. A journal that does not hold it
// proves nothing.
func checkReboot(o Options, before, boot string, end lastBoot) []health.Finding {
	var fs []health.Finding
	last, at := lastLine(end.system)
	if p, ok := parsePanic(end.kernel); ok {
		f := panicFinding(o, p, "found in the journal of boot "+before)
		f.At, f.Position = at, "reboot/"+boot+"/panic"
		fs = append(fs, f)
	}
	if end.system == "" || orderly.MatchString(end.system) {
		return fs
	}
	f := check.Finding(o.Catalog, "UnexpectedReboot", "", "The machine restarted without an orderly shutdown: power or the host failed, the kernel crashed, or it was reset from outside.")
	f.Evidence = fmt.Sprintf("boot %s ends with: %s", before, last)
	f.Fields = map[string]any{"boot": before}
	f.At, f.Position = at, "reboot/"+boot
	return append(fs, f)
}

// lastLine returns the last line and the time that it begins with.
func lastLine(s string) (string, time.Time) {
	s = strings.TrimRight(s, "\n")
	line := s[strings.LastIndexByte(s, '\n')+1:]
	stamp, _, _ := strings.Cut(line, " ")
	sec, err := strconv.ParseFloat(stamp, 64)
	if err != nil || sec <= 0 || sec > 1e11 {
		return line, time.Time{}
	}
	return line, time.UnixMicro(int64(sec * 1e6))
}

// Bounds of what is read of the journal.
const (
	lastBootTimeout = time.Minute
	lastBootLines   = "300"
)

// readLastBoot asks the host's journalctl for the end of a boot.
func readLastBoot(ctx context.Context, h *host.Host, boot string, args ...string) (end lastBoot, err error) {
	id := "_BOOT_ID=" + strings.ReplaceAll(boot, "-", "")
	run := func(matches ...string) (string, error) {
		var out, complaint bytes.Buffer
		argv := append([]string{"journalctl", "--no-pager", "--quiet", "--output=short-unix", "--lines=" + lastBootLines}, args...)
		_, err := h.Run(ctx, host.Command{Argv: append(argv, matches...), Stdout: &out, Stderr: &complaint, Timeout: lastBootTimeout})
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, bytes.TrimSpace(complaint.Bytes()))
		}
		return out.String(), nil
	}
	// Fields that begin with "_" are journald's own, which no pod can forge.
	end.system, err = run(id, "_PID=1", "+", id, "_COMM=systemd-journal", "+", id, "_COMM=systemd-shutdow", "+", id, "_TRANSPORT=driver")
	if errors.Is(err, host.ErrAbsent) {
		return end, check.ErrNoData
	}
	if err != nil {
		return end, err
	}
	end.kernel, err = run(id, "_TRANSPORT=kernel", "SYSLOG_FACILITY=0")
	return end, err
}
