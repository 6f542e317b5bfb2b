package gpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/agent"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia/nvmlhelper"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/test/fakenvml"
)

var _ agent.Component = (*GPUs)(nil)

// TestMain makes the test's own binary the helper.
func TestMain(m *testing.M) {
	if library := os.Getenv("GPU_TEST_CHILD"); library != "" {
		if err := nvmlhelper.Serve(os.Stdin, os.Stdout, library); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// node is a machine with eight GPUs on the bus, the driver loaded, and a stand-in
// for its library.
type node struct {
	host     *host.Host
	stateDir string
	lib      *fakenvml.Library
}

func newNode(t *testing.T) *node {
	t.Helper()
	if !nvmlhelper.Available {
		t.Skip("this build has no NVML: needs cgo")
	}
	lib, err := fakenvml.Build(t.TempDir())
	if errors.Is(err, fakenvml.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("sys/module/nvidia/version", "570.133.20\n")
	for i := range 8 {
		dir := fmt.Sprintf("sys/bus/pci/devices/0000:%02x:00.0/", 0x53+16*i)
		write(dir+"vendor", "0x10de\n")
		write(dir+"class", "0x030200\n")
	}
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return &node{h, t.TempDir(), lib}
}

// start starts the component.
func (n *node) start(t *testing.T) *GPUs {
	t.Helper()
	g := New(Options{Host: n.host, Catalog: health.NewCatalog(), StateDir: n.stateDir, Log: slog.New(slog.DiscardHandler), Command: func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), "GPU_TEST_CHILD="+n.lib.Path), n.lib.Env()...)
		return cmd
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return g
}

// run runs the checks once.
func run(t *testing.T, n *node, g *GPUs) (found []health.Finding, failed error) {
	t.Helper()
	for _, c := range g.Checks(0) {
		got, err := c.Run(t.Context(), n.host)
		found = append(found, got...)
		if c.Name() == "gpus" {
			failed = err
		}
	}
	return found, failed
}

func (n *node) set(t *testing.T, answers map[string]int) {
	t.Helper()
	if err := n.lib.Set(answers); err != nil {
		t.Fatal(err)
	}
}

func TestADroppedGPUIsFoundAndComesBack(t *testing.T) {
	n := newNode(t)
	g := n.start(t)
	if got, err := run(t, n, g); err != nil || len(got) > 0 {
		t.Fatalf("healthy: %v, %v", got, err)
	}
	n.set(t, map[string]int{"count": 7})
	_, _ = run(t, n, g)
	got, err := run(t, n, g)
	if err != nil || len(got) != 1 || got[0].Reason != "NvidiaDeviceCountMismatch" || got[0].Severity != health.Fatal {
		t.Fatalf("one is missing: %v, %v", got, err)
	}
	n.set(t, nil)
	if got, err := run(t, n, g); err != nil || len(got) > 0 {
		t.Errorf("it is back: %v, %v", got, err)
	}
}

func TestVerdictsAreForEachGPU(t *testing.T) {
	n := newNode(t)
	g := n.start(t)
	_, _ = run(t, n, g)
	got := g.Verdicts([]annotation.Finding{{Reason: "NvidiaXID79Error", Severity: "Fatal", Subject: "GPU-00000000-0000-0000-0000-000000000003 (0000:83:00)"}})
	rows := g.Table([]health.Finding{{Reason: "NvidiaXID79Error", Severity: health.Fatal, Subject: "GPU-00000000-0000-0000-0000-000000000003 (0000:83:00)"}})
	if len(rows) != 8 || rows[3].Verdict != "reboot" || rows[0].Verdict != "ok" || rows[0].NVLink != "18/18" {
		t.Errorf("table %+v", rows)
	}
	if len(got) != 8 || got[3].Verdict != "reboot" || got[0].Verdict != "ok" {
		t.Errorf("verdicts %+v", got)
	}
}

func TestNamesOutliveARestart(t *testing.T) {
	n := newNode(t)
	_, _ = run(t, n, n.start(t))
	again := n.start(t)
	if id := again.known.Get("0000:83:00"); id.UUID != "GPU-00000000-0000-0000-0000-000000000003" {
		t.Errorf("after a restart the GPU is called %+v", id)
	}
}

func TestGPUsAreReleasedOnRequest(t *testing.T) {
	n := newNode(t)
	g := n.start(t)
	if _, err := run(t, n, g); err != nil {
		t.Fatal(err)
	}
	held := func() bool {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", g.helper.PID()))
		for _, fd := range fds {
			if to, _ := os.Readlink(fd); to == n.lib.DevicePath {
				return true
			}
		}
		return false
	}
	if !held() {
		t.Fatal("NVML is not open after a sample")
	}
	if err := Release(n.stateDir, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if !held() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if held() {
		t.Fatal("NVML is open after a release")
	}
	if _, err := run(t, n, g); !errors.Is(err, nvmlhelper.ErrReleased) || held() {
		t.Errorf("a sample while released: %v, open %v", err, held())
	}
	if err := Release(n.stateDir, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, n, g); err != nil || !held() {
		t.Errorf("after the release: %v, open %v", err, held())
	}
}

func TestAReleaseThatCannotBeReadAsksForNothing(t *testing.T) {
	dir := t.TempDir()
	if released(dir, time.Now()) {
		t.Error("released without a file")
	}
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, folder, releaseFile), []byte("soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if released(dir, time.Now()) {
		t.Error("released by nonsense")
	}
}
