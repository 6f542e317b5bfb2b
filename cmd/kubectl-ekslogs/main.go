// Command kubectl-ekslogs is the kubectl plugin that brings log bundles of nodes
// home: "kubectl ekslogs NODE".
package main

import (
	"os"

	"github.com/ekslogs/ekslogs/pkg/plugin/ekslogs"
)

func main() { os.Exit(ekslogs.Main()) }
