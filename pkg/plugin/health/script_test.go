package health

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ekslogs/ekslogs/test/fleet"
)

// update rewrites the golden screens.
func update() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite the golden screens")
	main := func() { os.Exit(Main()) }
	testscript.Main(m, map[string]func(){
		"kubectl-health":                main,
		"kubectl-health-nodes":          main,
		"kubectl_complete-health":       main,
		"kubectl_complete-health-nodes": main,
	})
}

// TestScreens holds what users see against golden screens. The same scripts run
// against a real API server in test/e2e.
func TestScreens(t *testing.T) {
	now := time.Now()
	api := newFakeAPI(t, append(fleet.Light(now), fleet.Hostile(now)...)...)
	api.events = append(api.events, fleet.Event(now, "gpu-2.test", "AppCrash", "python[77] segfault in libtorch.so"))
	kubeconfig := api.kubeconfig(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/screens", RequireExplicitExec: true, UpdateScripts: update(),
		Setup: func(e *testscript.Env) error {
			e.Setenv("KUBECONFIG", kubeconfig)
			return nil
		},
	})
}

// TestScripts runs the program as a user does, without a cluster.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, UpdateScripts: update(),
		Setup: func(e *testscript.Env) error {
			e.Setenv("KUBECONFIG", e.WorkDir+"/none")
			return nil
		},
	})
}
