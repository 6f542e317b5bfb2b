package main

import (
	"os"
	"os/signal"
	"syscall"
)

// pause sleeps until SIGINT or SIGTERM. Where it is PID 1 of a PID namespace that
// containers share, it reaps their orphans.
func pause() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
