package runtime

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/systemd"
)

const (
	// inactiveLimit is how long an essential unit may be inactive.
	inactiveLimit = 5 * time.Minute
	// restartLimit is how many restarts are no finding.
	restartLimit = 3
)

const kubeletUnit = "kubelet.service"

// units finds services that systemd starts again and again, and essential ones that
// are not active. A unit that ended without an error leaves no line in the journal.
type units struct {
	check.Info
	opts  Options
	state unitStates
	read  func(ctx context.Context, h *host.Host, essential []string) ([]systemd.Unit, error)
	now   func() time.Time
}

// unitStates are what the last sample knew of each unit.
type unitStates map[string]unitState

type unitState struct {
	restarts uint32
	since    time.Time // since when it has not been active; zero while it is
}

func newUnits(o Options) *units {
	return &units{
		Info: info("units", 5*time.Minute, "{Unit}RepeatedRestart", "UnitInactive"), opts: o,
		read: readUnits, now: time.Now,
	}
}

// Run implements check.Check.
func (c *units) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	list, err := c.read(ctx, h, c.essential())
	if errors.Is(err, systemd.ErrAbsent) {
		return nil, check.ErrNoData
	}
	if err != nil {
		return nil, err
	}
	essential := func(u systemd.Unit) bool {
		return slices.Contains(c.essential(), u.Name) && (len(c.opts.EssentialUnits) > 0 || wanted(u))
	}
	var fs []health.Finding
	c.state, fs = checkUnits(c.opts, c.state, list, essential, c.now())
	return fs, nil
}

func (c *units) essential() []string {
	if len(c.opts.EssentialUnits) > 0 {
		return c.opts.EssentialUnits
	}
	return []string{kubeletUnit, "containerd.service"}
}

// wanted reports whether a unit is there and meant to run. One that is disabled stands
// beside another that does the work.
func wanted(u systemd.Unit) bool {
	switch u.File {
	case "disabled", "masked", "masked-runtime", "indirect":
		return false
	}
	return u.Load == "loaded"
}

// nodeUnits are services that a node has besides; those of which systemd does
// something right now are looked at whatever their name.
func nodeUnits() []string {
	return []string{"kubelet.service", "containerd.service", "docker.service", "crio.service", "nvidia-*.service", "nodeadm*.service", "ipamd.service", "aws-network-policy-agent.service", "systemd-networkd.service", "systemd-resolved.service", "soci-snapshotter.service", "kube-proxy.service"}
}

func readUnits(ctx context.Context, h *host.Host, essential []string) ([]systemd.Unit, error) {
	conn, err := systemd.Dial(ctx, h)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	found, err := conn.Find(ctx, "*.service")
	if err != nil {
		return nil, err
	}
	names := slices.Clone(essential)
	for _, u := range found {
		busy := u.Active == "activating" || u.Active == "failed" || u.Active == "deactivating"
		known := slices.ContainsFunc(nodeUnits(), func(p string) bool { ok, _ := path.Match(p, u.Name); return ok })
		if (busy || known) && !slices.Contains(names, u.Name) {
			names = append(names, u.Name)
		}
	}
	out := make([]systemd.Unit, 0, len(names))
	for _, name := range names {
		u, err := conn.Unit(ctx, name)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return out, nil
}

// checkUnits compares with the last sample. The first of a unit is a baseline for its
// restarts, and a count that fell is a new one.
func checkUnits(o Options, before unitStates, list []systemd.Unit, essential func(systemd.Unit) bool, now time.Time) (unitStates, []health.Finding) {
	after, out := unitStates{}, []health.Finding(nil)
	for _, u := range list {
		last, known := before[u.Name]
		s := unitState{restarts: u.Restarts}
		if u.Active != "active" && u.Active != "reloading" {
			s.since = now
			if known && !last.since.IsZero() {
				s.since = last.since
			}
			if !u.Left.IsZero() && u.Left.Before(s.since) {
				s.since = u.Left
			}
		}
		after[u.Name] = s
		if known && u.Restarts > last.restarts && u.Restarts > restartLimit {
			f := check.Finding(o.Catalog, titleCase(u.Name)+"RepeatedRestart", u.Name, "systemd starts "+u.Name+" again and again.")
			f.Evidence = fmt.Sprintf("%s: NRestarts rose from %d to %d", u.Name, last.restarts, u.Restarts)
			f.Fields = map[string]any{"unit": u.Name, "restart_counter": int64(u.Restarts)}
			out = append(out, f)
		}
		if essential(u) && !s.since.IsZero() && now.Sub(s.since) > inactiveLimit {
			f := check.Finding(o.Catalog, "UnitInactive", u.Name, fmt.Sprintf("%s, which the node needs, has not been active for more than %d minutes.", u.Name, int(inactiveLimit.Minutes())))
			f.Evidence = fmt.Sprintf("%s is %s since %s", u.Name, u.Active, s.since.UTC().Format(time.RFC3339))
			f.Fields = map[string]any{"unit": u.Name, "active_state": u.Active}
			out = append(out, f)
		}
	}
	return after, out
}

// titleCase is the name of a unit as reason codes have it: "containerd.service" is
// "Containerd".
func titleCase(unit string) string {
	name := []byte(strings.TrimSuffix(unit, ".service"))
	for i, c := range name {
		if c >= 'a' && c <= 'z' && (i == 0 || strings.IndexByte("-._@", name[i-1]) >= 0) {
			name[i] = c - 'a' + 'A'
		}
	}
	if len(name) == 0 || name[0] < 'A' || name[0] > 'Z' {
		return "Unit" + string(name)
	}
	return string(name)
}

// kubeletRecovery finds nothing. It takes the samples that clear KubeletFailed, which
// the journal tells of: the unit is active again.
type kubeletRecovery struct {
	check.Info
	read func(ctx context.Context, h *host.Host, essential []string) ([]systemd.Unit, error)
}

func newKubeletRecovery(Options) *kubeletRecovery {
	return &kubeletRecovery{info("kubelet-recovery", 5*time.Minute, "KubeletFailed"), readUnits}
}

// Run implements check.Check.
func (c *kubeletRecovery) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	list, err := c.read(ctx, h, []string{kubeletUnit})
	if errors.Is(err, systemd.ErrAbsent) {
		return nil, check.ErrNoData
	}
	if err != nil {
		return nil, err
	}
	for _, u := range list {
		if u.Name == kubeletUnit && u.Active == "active" {
			return nil, nil
		}
	}
	return nil, check.ErrNoData
}
