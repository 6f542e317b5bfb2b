// Command node-agent runs on a node, finds its faults and collects its logs.
package main

import (
	"os"

	"github.com/ekslogs/ekslogs/pkg/agent/command"
)

func main() { os.Exit(command.Main()) }
