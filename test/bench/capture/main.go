// Command capture measures a capture of much log text: the memory of the agent and
// of the process that captures, and the time beside that of "tar | gzip -6" over the
// same files.
//
// It makes a folder with the /var/log of a node, has "node-agent run" capture it for
// a NodeDiagnostic, and runs tar on the same files. The process that captures has
// nice 19 and the idle I/O class; tar gets these too, so that on a busy machine the
// two still compare. No file is over the bound of its item: all text is in the
// bundle.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ekslogs/ekslogs/test/bench/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "capture:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	size := flag.Int64("mib", 2048, "how many MiB of log text")
	settle := flag.Duration("settle", 30*time.Second, "how long the agent runs before its memory counts as idle")
	flag.Parse()
	l, err := lab.New(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	root := filepath.Join(l.Dir, "root")
	files, total, err := makeLogs(root, *size<<20)
	if err != nil {
		return err
	}
	machine := lab.Machine()
	a, err := l.Start(ctx, "--root", root)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(*settle):
	}
	ours, err := captured(ctx, l, a, root)
	if err != nil {
		return err
	}
	theirs, err := tarred(ctx, root, files, filepath.Join(l.Dir, "tar.gz"))
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", machine)
	fmt.Printf("%d MiB of logs in %d files: %s\n", total>>20, len(files), ours.message)
	fmt.Printf("memory       %s idle; peak %s: %s above idle (goal: at most 64 MiB)\n", mib(ours.idle), mib(ours.peak), mib(ours.peak-ours.idle))
	fmt.Printf("             the agent's own peak %s, the capturing process's %s, of it anonymous %s\n", mib(ours.agentPeak), mib(ours.childPeak), mib(ours.childAnonymous))
	fmt.Printf("wall time    %.1fs, tar | gzip -6 %.1fs: %.2f × (goal: at most 1.3)\n", ours.wall.Seconds(), theirs.wall.Seconds(), ours.wall.Seconds()/theirs.wall.Seconds())
	fmt.Printf("CPU time     %.1fs, tar | gzip -6 %.1fs: %.2f × (redaction and hashes are in ours; no goal)\n", ours.cpu.Seconds(), theirs.cpu.Seconds(), ours.cpu.Seconds()/theirs.cpu.Seconds())
	fmt.Printf("archive      %s, tar | gzip -6 %s\n", mib(ours.bytes), mib(theirs.bytes))
	return nil
}

// made is one way to make an archive.
type made struct {
	wall, cpu time.Duration
	bytes     int64
}

// tarred packs the files as a person would.
func tarred(ctx context.Context, root string, files []string, out string) (made, error) {
	script := `cd "$1"; out=$2; shift 2; tar cf - "$@" | gzip -6 > "$out"`
	argv := append([]string{"-n", "19", "ionice", "-c", "3", "bash", "-euo", "pipefail", "-c", script, "bash", root, out}, files...)
	cmd := exec.CommandContext(ctx, "nice", argv...)
	start := time.Now()
	if text, err := cmd.CombinedOutput(); err != nil {
		return made{}, fmt.Errorf("tar | gzip -6: %w\n%s", err, text)
	}
	m := made{wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	info, err := os.Stat(out)
	if err != nil {
		return made{}, err
	}
	m.bytes = info.Size()
	return m, nil
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
