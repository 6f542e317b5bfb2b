package nvidia

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

func TestFabricManagerMustNotHaveFailed(t *testing.T) {
	root := t.TempDir()
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	active, asked := "failed", error(nil)
	c := &FabricManager{Catalog: health.NewCatalog(), State: func(context.Context, *host.Host, string) (string, error) { return active, asked }}
	if _, err := c.Run(t.Context(), h); !errors.Is(err, check.ErrNoData) {
		t.Errorf("without NVSwitches: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nvidia-nvswitch0", "nvidia-nvswitchctl"} {
		if err := os.WriteFile(filepath.Join(root, "dev", name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		active string
		found  bool
	}{
		{"inactive", false}, {"activating", false}, {"failed", false}, {"active", false},
		{"failed", false}, {"failed", true}, {"failed", true}, {"active", false},
	} {
		active = step.active
		got, err := c.Run(t.Context(), h)
		if err != nil || (len(got) == 1) != step.found {
			t.Errorf("step %d, %s: %v, %v", i, step.active, told(got), err)
		}
		for _, f := range got {
			if f.Reason != "FabricManagerNotRunning" || f.Severity != health.Fatal {
				t.Errorf("found %s %s", f.Reason, f.Severity)
			}
		}
	}
	asked = errors.New("no bus")
	if got, err := c.Run(t.Context(), h); err == nil {
		t.Errorf("without systemd: %v", got)
	}
}
