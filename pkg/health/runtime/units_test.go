package runtime

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/systemd"
)

// sampler makes the check of units see a list at each step of five minutes.
type sampler struct {
	t   *testing.T
	c   *units
	now time.Time
}

func newSampler(t *testing.T, essential ...string) *sampler {
	o := options(nil)
	o.EssentialUnits = essential
	return &sampler{t: t, c: newUnits(o), now: time.Unix(1e9, 0)}
}

func (s *sampler) see(list ...systemd.Unit) []health.Finding {
	s.t.Helper()
	s.c.read = func(context.Context, *host.Host, []string) ([]systemd.Unit, error) { return list, nil }
	s.c.now = func() time.Time { return s.now }
	fs := checktest.Run(s.t, s.c, nil)
	s.now = s.now.Add(5*time.Minute + time.Second)
	return fs
}

func containerd(restarts uint32) systemd.Unit {
	return systemd.Unit{Name: "containerd.service", Load: "loaded", File: "enabled", Active: "active", Restarts: restarts}
}

func TestRestartsAreJudgedByTheirRise(t *testing.T) {
	found := told{"ContainerdRepeatedRestart", health.Warning, "containerd.service"}
	s := newSampler(t)
	wantFindings(t, s.see(containerd(40)))
	wantFindings(t, s.see(containerd(40)))
	wantFindings(t, s.see(containerd(41)), found)
	wantFindings(t, s.see(containerd(41)))
	wantFindings(t, s.see(containerd(3)))
	wantFindings(t, s.see(containerd(4)), found)
	s = newSampler(t)
	wantFindings(t, s.see(containerd(0)))
	wantFindings(t, s.see(containerd(3)))
}

func TestAnInactiveUnit(t *testing.T) {
	kubelet := func(active, file string) systemd.Unit {
		return systemd.Unit{Name: "kubelet.service", Load: "loaded", File: file, Active: active}
	}
	found := told{"UnitInactive", health.Warning, "kubelet.service"}
	s := newSampler(t)
	wantFindings(t, s.see(kubelet("inactive", "enabled")))
	wantFindings(t, s.see(kubelet("inactive", "enabled")), found)
	wantFindings(t, s.see(kubelet("active", "enabled")))
	wantFindings(t, s.see(kubelet("activating", "enabled")))
	wantFindings(t, s.see(kubelet("failed", "enabled")), found)

	for range 3 {
		s := newSampler(t)
		wantFindings(t, s.see(kubelet("inactive", "disabled")))
		wantFindings(t, s.see(kubelet("inactive", "disabled")))
		wantFindings(t, s.see(systemd.Unit{Name: "kubelet.service", Load: "not-found", Active: "inactive"}))
	}

	left := kubelet("inactive", "enabled")
	s = newSampler(t)
	left.Left = s.now.Add(-6 * time.Minute)
	wantFindings(t, s.see(left), found)

	s = newSampler(t, "my.service")
	mine := systemd.Unit{Name: "my.service", Load: "not-found", Active: "inactive"}
	wantFindings(t, s.see(mine, kubelet("inactive", "enabled")))
	wantFindings(t, s.see(mine, kubelet("inactive", "enabled")), told{"UnitInactive", health.Warning, "my.service"})
}

func TestUnitsWithoutSystemd(t *testing.T) {
	h := checktest.Tree(t, map[string]string{"etc/hostname": "node-a"})
	for _, c := range []check.Check{newUnits(options(h)), newKubeletRecovery(options(h))} {
		if _, err := c.Run(t.Context(), h); !errors.Is(err, check.ErrNoData) {
			t.Errorf("%s: %v, want ErrNoData", c.Name(), err)
		}
	}
	// Booted with systemd, which cannot be asked: blind.
	h = checktest.Tree(t, map[string]string{"run/systemd/system/x": ""})
	if _, err := newUnits(options(h)).Run(t.Context(), h); err == nil || errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want an error", err)
	}
}

func TestKubeletRecoveryIsACleanSampleOnlyWhileItRuns(t *testing.T) {
	c := newKubeletRecovery(options(nil))
	state := "failed"
	c.read = func(context.Context, *host.Host, []string) ([]systemd.Unit, error) {
		return []systemd.Unit{{Name: "kubelet.service", Active: state}}, nil
	}
	if _, err := c.Run(t.Context(), nil); !errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want ErrNoData while it has failed", err)
	}
	state = "active"
	wantFindings(t, checktest.Run(t, c, nil))
}

func TestTitleCase(t *testing.T) {
	for unit, want := range map[string]string{
		"containerd.service": "Containerd", "kubelet.service": "Kubelet",
		"nvidia-fabricmanager.service": "Nvidia-Fabricmanager", "0day.service": "Unit0day",
	} {
		if got := titleCase(unit); got != want {
			t.Errorf("titleCase(%s) = %s, want %s", unit, got, want)
		}
	}
}
