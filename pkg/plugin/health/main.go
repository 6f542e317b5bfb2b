// Package health is "kubectl health": the health of the fleet on one screen, of one
// node on one page, and what has happened.
package health

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// Exit codes. Those of --exit-code are fleet.Totals.ExitCode's.
const (
	exitOK          = 0
	exitError       = 1
	exitUnknown     = 4
	exitInterrupted = 130
)

// errInterrupted is the cause of a context that Ctrl-C ended.
var errInterrupted = errors.New("interrupted")

// Main runs the plugin with the process's own arguments and streams and returns its
// exit code. Ctrl-C ends it.
func Main() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel(errInterrupted)
		// The second one ends the process at once.
		signal.Stop(signals)
	}()
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return Run(ctx, Args(os.Args), os.Environ(), streams)
}

// Args are the arguments of the command "kubectl health" for those of a process, whose
// name counts: as kubectl-health-nodes it answers as "kubectl health nodes", and under
// the names that kubectl asks for completions it completes.
func Args(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	name, rest := strings.TrimSuffix(filepath.Base(argv[0]), ".exe"), argv[1:]
	switch name {
	case "kubectl-health-nodes", "kubectl-health_nodes":
		return append([]string{"nodes"}, rest...)
	case "kubectl_complete-health":
		return append([]string{"__complete"}, rest...)
	case "kubectl_complete-health-nodes":
		return append([]string{"__complete", "nodes"}, rest...)
	}
	return rest
}

// Run runs the plugin with args, which do not hold the program's name, and returns
// its exit code. Results go to streams.Out, everything said to a person to
// streams.ErrOut.
func Run(ctx context.Context, args, environ []string, streams genericiooptions.IOStreams) int {
	cmd := New(streams, environ)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	var status *exitStatus
	switch {
	case errors.As(err, &status):
		return status.code
	case errors.Is(context.Cause(ctx), errInterrupted):
		return exitInterrupted
	case err == nil:
		return exitOK
	}
	fmt.Fprintln(streams.ErrOut, "error: "+term.CleanLines(err.Error()))
	return exitError
}

// exitStatus is an error of which everything has been told already.
type exitStatus struct{ code int }

func (e *exitStatus) Error() string { return fmt.Sprintf("exit code %d", e.code) }
