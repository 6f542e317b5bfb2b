// Command cluster brings a real one-node Kubernetes cluster up on this machine, on
// loopback alone, and takes it away again without a trace:
//
//	go run ./test/cluster up
//	go run ./test/cluster status
//	go run ./test/cluster down
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}
