package nvidia

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// FabricManagerUnit is the service that sets up the NVSwitches. Without it the GPUs
// behind them cannot be used together.
const FabricManagerUnit = "nvidia-fabricmanager.service"

// FabricManager checks that the fabric manager runs where there are NVSwitches.
type FabricManager struct {
	Catalog *health.Catalog
	// State returns the ActiveState of a systemd unit; nil asks the host's systemd.
	State func(ctx context.Context, h *host.Host, unit string) (string, error)

	failed bool
}

// Name implements check.Check.
func (*FabricManager) Name() string { return "fabric-manager" }

// Condition implements check.Check.
func (*FabricManager) Condition() health.ConditionType { return health.AcceleratedHardwareReady }

// Reasons implements check.Check.
func (*FabricManager) Reasons() []string { return []string{"FabricManagerNotRunning"} }

// Interval implements check.Check.
func (*FabricManager) Interval() time.Duration { return time.Minute }

// Run implements check.Check. A service that has not started, or is starting, is no
// fault; one that has failed in two samples is.
func (c *FabricManager) Run(ctx context.Context, h *host.Host) ([]health.Finding, error) {
	switches, err := h.Glob("/dev/nvidia-nvswitch[0-9]*")
	if err != nil || len(switches) == 0 {
		c.failed = false
		return nil, check.ErrNoData
	}
	state := c.State
	if state == nil {
		state = unitState
	}
	active, err := state(ctx, h, FabricManagerUnit)
	if err != nil {
		return nil, err
	}
	before := c.failed
	c.failed = active == "failed"
	if !c.failed || !before {
		return nil, nil
	}
	f := check.Finding(c.Catalog, "FabricManagerNotRunning", FabricManagerUnit,
		FabricManagerUnit+" has failed: the GPUs cannot reach one another by NVLink")
	f.Fields = map[string]any{"unit": FabricManagerUnit, "nvswitches": int64(len(switches))}
	return []health.Finding{f}, nil
}

// unitState asks the host's systemd over the system bus.
func unitState(ctx context.Context, h *host.Host, unit string) (string, error) {
	conn, err := dbus.NewConnection(func() (*godbus.Conn, error) {
		return godbus.Connect("unix:path="+h.Path("/run/dbus/system_bus_socket"), godbus.WithContext(ctx))
	})
	if err != nil {
		return "", fmt.Errorf("ask systemd: %w", err)
	}
	defer conn.Close()
	p, err := conn.GetUnitPropertyContext(ctx, unit, "ActiveState")
	if err != nil {
		return "", fmt.Errorf("ask systemd about %s: %w", unit, err)
	}
	active, _ := p.Value.Value().(string)
	return active, nil
}
