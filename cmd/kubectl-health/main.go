// Command kubectl-health is the kubectl plugin that shows the health of nodes:
// "kubectl health nodes summary".
package main

import (
	"os"

	"github.com/ekslogs/ekslogs/pkg/plugin/health"
)

func main() { os.Exit(health.Main()) }
