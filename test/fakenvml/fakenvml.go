// Package fakenvml builds a stand-in for NVIDIA's management library, whose answers
// a test sets while it runs. It stands in for eight H100.
package fakenvml

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNoCompiler says that there is no C compiler.
var ErrNoCompiler = errors.New("no C compiler (gcc) on this machine")

// Library is a built library and the file that sets its answers.
type Library struct {
	// Path is the shared library.
	Path string
	// StatePath is the file that sets its answers, DevicePath the one that it holds
	// open while it is initialised.
	StatePath, DevicePath string
}

// Build compiles the library into dir.
func Build(dir string) (*Library, error) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return nil, ErrNoCompiler
	}
	_, self, _, ok := runtime.Caller(0)
	if !ok {
		return nil, errors.New("where testdata/fakenvml.c lies is not known")
	}
	header, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml").Output()
	if err != nil {
		return nil, fmt.Errorf("find nvml.h: %w", err)
	}
	l := &Library{
		Path:       filepath.Join(dir, "libnvidia-ml.so.1"),
		StatePath:  filepath.Join(dir, "state.json"),
		DevicePath: filepath.Join(dir, "nvidiactl"),
	}
	cmd := exec.Command(gcc, "-shared", "-fPIC", "-O1", "-Wall", "-Wno-deprecated-declarations", "-DNVML_NO_UNVERSIONED_FUNC_DEFS=1",
		"-I", filepath.Join(strings.TrimSpace(string(header)), "pkg", "nvml"),
		"-o", l.Path, filepath.Join(filepath.Dir(self), "testdata", "fakenvml.c"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	if err := os.WriteFile(l.DevicePath, nil, 0o600); err != nil {
		return nil, err
	}
	return l, l.Set(nil)
}

// Env is the environment of a process that loads the library.
func (l *Library) Env() []string {
	return []string{"FAKENVML_STATE=" + l.StatePath, "FAKENVML_DEVICE=" + l.DevicePath}
}

// Set sets the answers; the keys are those that testdata/fakenvml.c lists. What is not named
// is as on a healthy node. Readers see the old answers or the new ones, never half.
func (l *Library) Set(answers map[string]int) error {
	if answers == nil {
		answers = map[string]int{}
	}
	b, err := json.Marshal(answers)
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.StatePath+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(l.StatePath+".new", l.StatePath)
}
