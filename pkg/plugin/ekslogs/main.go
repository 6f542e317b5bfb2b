package ekslogs

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

// Exit codes.
const (
	exitOK          = 0
	exitError       = 1
	exitSomeFailed  = 2
	exitInterrupted = 130
)

// completer is the name under which kubectl asks a plugin to complete a command
// line.
const completer = "kubectl_complete-ekslogs"

// errInterrupted is the cause of a context that Ctrl-C ended.
var errInterrupted = errors.New("interrupted")

// Main runs the plugin with the process's own arguments and streams and returns its
// exit code. The first Ctrl-C, SIGTERM or end of the terminal ends the work and cleans
// up, the second one ends the process.
func Main() int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as it is under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		<-signals
		cancel(errInterrupted)
		<-signals
		os.Exit(exitInterrupted)
	}()
	args := os.Args[1:]
	if name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"); name == completer {
		args = append([]string{"__complete"}, args...)
	}
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return Run(ctx, args, os.Environ(), streams)
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
	case errors.Is(context.Cause(ctx), errInterrupted):
		fmt.Fprintln(streams.ErrOut, "interrupted")
		return exitInterrupted
	case err == nil:
		return exitOK
	case errors.As(err, &status):
		return status.code
	}
	fmt.Fprintln(streams.ErrOut, "error: "+term.CleanLines(err.Error()))
	return exitError
}

// exitStatus is an error of which everything has been told already.
type exitStatus struct{ code int }

func (e *exitStatus) Error() string { return fmt.Sprintf("exit code %d", e.code) }
