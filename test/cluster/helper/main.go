// Command helper holds the two small programs that a cluster needs beside those of
// Kubernetes: the sandbox container of pods, and the way from the API server to
// the node.
package main

import (
	"fmt"
	"os"
)

func main() {
	args := os.Args[1:]
	var err error
	switch {
	case len(args) == 1 && args[0] == "pause":
		pause()
	case len(args) == 3 && args[0] == "egress":
		err = egress(args[1], args[2])
	default:
		err = fmt.Errorf("usage: helper pause | helper egress SOCKET NODE-ADDRESS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(1)
	}
}
