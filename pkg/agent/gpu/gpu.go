// Package gpu puts the watching of NVIDIA GPUs together for the agent: the decoder of
// the kernel's log, the process that reads NVML, and the checks.
package gpu

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/nvmlhelper"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// hold is how long the first line of a GPU's incident waits for the rest. The lines
// of one fault mostly come within a few milliseconds, and the node's condition waits.
const hold = 100 * time.Millisecond

// Options make GPUs.
type Options struct {
	Host    *host.Host
	Catalog *health.Catalog
	// StateDir is the folder of this process (not of the host) for what is remembered.
	StateDir string
	// Library is the NVML library to load; empty means nvmlhelper.FindLibrary's.
	Library string
	// Command makes the command of the helper process; nil means this program's verb.
	Command func() *exec.Cmd
	Log     *slog.Logger
}

// GPUs is what watches the GPUs. It is a component of the agent: Run ends the helper
// when the agent ends, and sees to it that GPUs are released on request.
type GPUs struct {
	o        Options
	known    *nvidia.Identities
	suspects *nvidia.Suspects
	source   *nvmlhelper.Source
	helper   *nvmlhelper.Helper
	monitor  *nvmlhelper.Monitor
}

// New returns GPUs. Nothing is started before a check runs on a node with a driver.
func New(o Options) *GPUs {
	if o.Library == "" {
		o.Library = nvmlhelper.FindLibrary(o.Host)
	}
	if o.Command == nil {
		o.Command = func() *exec.Cmd { return helperCommand(o.Library) }
	}
	g := &GPUs{
		o: o, known: &nvidia.Identities{}, source: nvmlhelper.NewSource(),
		suspects: &nvidia.Suspects{PodOf: nvidia.PodOf(o.Host), Catalog: o.Catalog},
	}
	g.recall()
	g.helper = nvmlhelper.NewHelper(nvmlhelper.Options{Command: o.Command, OnEvent: g.source.Push})
	g.monitor = &nvmlhelper.Monitor{
		Poll: g.helper.Poll, Close: g.helper.Close, Catalog: o.Catalog,
		Released: func() bool { return released(o.StateDir, time.Now()) }, OnIdentity: g.identify,
	}
	return g
}

// helperCommand is this program as the NVML helper. /proc/self/exe is the running
// program even when its file has been replaced.
func helperCommand(library string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "nvml-helper", "--library", library)
	cmd.Args[0] = "node-agent"
	cmd.Stderr = os.Stderr
	// Most of the heap is garbage after each sample: collect early, stay small.
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=50")
	return cmd
}

// Name implements agent.Component.
func (g *GPUs) Name() string { return "gpus" }

// Run implements agent.Component.
func (g *GPUs) Run(ctx context.Context) error {
	defer g.helper.Stop()
	if devices, err := gpustate.PCIDevices(g.o.Host); err == nil && len(devices) == 0 {
		<-ctx.Done()
		return nil
	}
	watchRelease(ctx, g.o.StateDir, g.o.Log, func() {
		if err := g.helper.Close(ctx); err != nil {
			g.o.Log.Warn("NVML was not closed", "err", err)
		}
	})
	return nil
}

// Detector are the options of the log's decoder.
func (g *GPUs) Detector() nvidia.Options {
	return nvidia.Options{
		Hold: hold, Driver: nvidia.DriverBranch(nvidia.DriverVersion(g.o.Host)), Identities: g.known, Suspects: g.suspects,
	}
}

// Source is the source of NVML's events.
func (g *GPUs) Source() host.LogSource { return g.source }

// Checks are the checks of the GPUs. expected is how many there must be: 0 goes by the
// instance type, and a negative number expects none.
func (g *GPUs) Checks(expected int) []check.Check {
	g.monitor.Expect(expected)
	return append(g.monitor.Checks(), g.suspects, &nvidia.FabricManager{Catalog: g.o.Catalog})
}

// identify takes what NVML calls a GPU, and remembers news: after a restart the log
// goes on after the lines that name the GPUs, and subjects must stay the same.
func (g *GPUs) identify(pci string, id nvidia.Identity) {
	if !g.known.Set(pci, id) {
		return
	}
	b, err := json.Marshal(g.known.All())
	if err == nil {
		err = os.MkdirAll(filepath.Dir(g.identityFile()), 0o700)
	}
	if err == nil {
		err = host.ReplaceFile(g.identityFile(), b)
	}
	if err != nil {
		g.o.Log.Warn("the names of the GPUs are not remembered", "err", err)
	}
}

func (g *GPUs) identityFile() string { return filepath.Join(g.o.StateDir, folder, "names.json") }

func (g *GPUs) recall() {
	b, err := os.ReadFile(g.identityFile())
	var known map[string]nvidia.Identity
	if err == nil {
		err = json.Unmarshal(b, &known)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.o.Log.Warn("the names of the GPUs are read anew", "err", err)
	}
	for pci, id := range known {
		g.known.Set(pci, id)
	}
}
