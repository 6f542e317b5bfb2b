package ekslogs

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"kubectl-ekslogs":          func() { os.Exit(Main()) },
		"kubectl_complete-ekslogs": func() { os.Exit(Main()) },
	})
}

// TestScripts runs the program as a user does, without a cluster.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true})
}
