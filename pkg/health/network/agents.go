package network

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/platform"
	"github.com/ekslogs/ekslogs/pkg/host/systemd"
)

const (
	ipamdUnit = "ipamd.service"
	// ipamdProcess is the process of the VPC CNI that gives pods their addresses.
	ipamdProcess = "aws-k8s-agent"
	npaUnit      = "aws-network-policy-agent.service"
	// agentLimit is how long an agent of the network may be away: it may be replaced, or
	// its image be pulled.
	agentLimit = 15 * time.Minute
	// npaRestarts is how many restarts between two samples are too many.
	npaRestarts = 5
)

// away is since when something has been away. A new key starts the clock anew.
type away struct {
	key   string
	since time.Time
}

// check returns the state after a sample, and whether it has been away for too long.
func (a away) check(key string, running bool, now time.Time) (away, bool) {
	switch {
	case running:
		return away{}, false
	case a.since.IsZero() || a.key != key:
		return away{key, now}, false
	}
	return a, now.Sub(a.since) > agentLimit
}

// ipamd finds a node whose pods get no addresses: it has the VPC CNI, and the daemon of
// that does not run.
type ipamd struct {
	check.Info
	opts  Options
	state away
	unit  func(ctx context.Context, h *host.Host, name string) (systemd.Unit, error)
	now   func() time.Time
}

func newIPAMD(o Options) *ipamd {
	return &ipamd{Info: info("ipamd", 5*time.Minute, "IPAMDNotRunning"), opts: o, unit: readUnit, now: time.Now}
}

// Run implements check.Check. While the daemon is away, and not yet for too long, there
// is nothing to report and nothing is well.
func (c *ipamd) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	key, running, err := c.look(ctx, h)
	if err != nil {
		return nil, err
	}
	var bad bool
	c.state, bad = c.state.check(key, running, c.now())
	switch {
	case running:
		return nil, nil
	case !bad:
		return nil, check.ErrNoData
	}
	f := check.Finding(c.opts.Catalog, "IPAMDNotRunning", "", fmt.Sprintf("The daemon that gives pods their addresses has not run for more than %d minutes: no pod can start.", int(agentLimit.Minutes())))
	f.Evidence = "not running since " + c.state.since.UTC().Format(time.RFC3339) + ": " + key
	return []health.Finding{f}, nil
}

// look returns what the daemon belongs to, and whether it runs.
func (c *ipamd) look(ctx context.Context, h *host.Host) (key string, running bool, err error) {
	if c.opts.Platform.Auto && platform.HasUnit(h, ipamdUnit) {
		u, err := c.unit(ctx, h, ipamdUnit)
		return ipamdUnit, u.Active == "active", err
	}
	pods := platform.VPCCNI(h)
	if len(pods) == 0 {
		c.state = away{}
		return "", false, check.ErrNoData
	}
	t, err := c.opts.Processes.Table(ctx, time.Minute)
	if err != nil {
		return "", false, err
	}
	for _, p := range t.Processes {
		running = running || p.Comm == ipamdProcess && p.State != 'Z'
	}
	return strings.Join(pods, " "), running, nil
}

// npa finds a node of EKS Auto Mode whose network policies nobody puts into force.
type npa struct {
	check.Info
	opts  Options
	state away
	last  *uint32
	unit  func(ctx context.Context, h *host.Host, name string) (systemd.Unit, error)
	now   func() time.Time
}

func newNPA(o Options) *npa {
	return &npa{
		Info: info("network-policy-agent", 5*time.Minute, "NPANotRunning", "NPARepeatedlyRestart"), opts: o,
		unit: readUnit, now: time.Now,
	}
}

// Run implements check.Check.
func (c *npa) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	if !c.opts.Platform.Auto || !platform.HasUnit(h, npaUnit) {
		return nil, check.ErrNoData
	}
	u, err := c.unit(ctx, h, npaUnit)
	if err != nil {
		return nil, err
	}
	var out []health.Finding
	if c.last != nil && u.Restarts >= *c.last && u.Restarts-*c.last >= npaRestarts {
		f := check.Finding(c.opts.Catalog, "NPARepeatedlyRestart", npaUnit, "The network policy agent is started again and again.")
		f.Evidence = fmt.Sprintf("NRestarts rose from %d to %d", *c.last, u.Restarts)
		f.Fields = map[string]any{"unit": npaUnit, "restart_counter": int64(u.Restarts)}
		out = append(out, f)
	}
	c.last = &u.Restarts
	running := u.Active == "active"
	var bad bool
	c.state, bad = c.state.check(npaUnit, running, c.now())
	switch {
	case bad:
		f := check.Finding(c.opts.Catalog, "NPANotRunning", npaUnit, fmt.Sprintf("The network policy agent has not run for more than %d minutes: policies of new pods are not in force.", int(agentLimit.Minutes())))
		f.Evidence = fmt.Sprintf("%s is %s since %s", npaUnit, u.Active, c.state.since.UTC().Format(time.RFC3339))
		f.Fields = map[string]any{"unit": npaUnit, "active_state": u.Active}
		out = append(out, f)
	case !running && len(out) == 0:
		return nil, check.ErrNoData // nothing to report yet, and nothing is well
	}
	return out, nil
}

func readUnit(ctx context.Context, h *host.Host, name string) (systemd.Unit, error) {
	conn, err := systemd.Dial(ctx, h)
	if errors.Is(err, systemd.ErrAbsent) {
		return systemd.Unit{}, check.ErrNoData
	}
	if err != nil {
		return systemd.Unit{}, err
	}
	defer conn.Close()
	return conn.Unit(ctx, name)
}
