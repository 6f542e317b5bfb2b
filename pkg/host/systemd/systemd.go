// Package systemd asks the host's systemd about units, over D-Bus and without a
// process.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// ErrAbsent says that the host was not booted with systemd (sd_booted(3)).
var ErrAbsent = errors.New("no systemd on this host")

// Unit is what systemd knows of a unit (org.freedesktop.systemd1(5)).
type Unit struct {
	Name string
	// Load is "loaded", "not-found", "masked" and so on; Active is "active",
	// "activating", "failed" and so on.
	Load, Active string
	// File is the state of its file: "enabled", "static", "disabled" and so on.
	File string
	// Restarts is how often systemd has started it again by itself.
	Restarts uint32
	// Left is when it last stopped being active; zero for never.
	Left time.Time
}

// Conn is a connection to systemd.
type Conn struct{ conn *dbus.Conn }

// Dial connects to the host's systemd: by the system bus, or by systemd's own socket
// where there is no bus. The caller closes the connection.
func Dial(ctx context.Context, h *host.Host) (*Conn, error) {
	if !h.Exists("/run/systemd/system") {
		return nil, ErrAbsent
	}
	conn, err := dbus.NewConnection(func() (*godbus.Conn, error) {
		return godbus.Connect("unix:path="+h.Path("/run/dbus/system_bus_socket"), godbus.WithContext(ctx))
	})
	if err != nil {
		var direct error
		conn, direct = dbus.NewConnection(func() (*godbus.Conn, error) { return dialDirect(ctx, h) })
		if direct != nil {
			return nil, fmt.Errorf("ask systemd: %w", errors.Join(err, direct))
		}
	}
	return &Conn{conn}, nil
}

// dialDirect connects without a bus, where there is no Hello.
func dialDirect(ctx context.Context, h *host.Host) (*godbus.Conn, error) {
	conn, err := godbus.Dial("unix:path="+h.Path("/run/systemd/private"), godbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := conn.Auth(nil); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// Close ends the connection.
func (c *Conn) Close() { c.conn.Close() }

// Find returns the names and states of the loaded units that match a pattern, such as
// "nvidia-*.service". Only Name, Load and Active are set.
func (c *Conn) Find(ctx context.Context, patterns ...string) ([]Unit, error) {
	list, err := c.conn.ListUnitsByPatternsContext(ctx, nil, patterns)
	if err != nil {
		return nil, fmt.Errorf("ask systemd for its units: %w", err)
	}
	units := make([]Unit, 0, len(list))
	for _, u := range list {
		units = append(units, Unit{Name: u.Name, Load: u.LoadState, Active: u.ActiveState})
	}
	return units, nil
}

// Unit returns all about a service. One that does not exist is "not-found" and
// inactive.
func (c *Conn) Unit(ctx context.Context, name string) (Unit, error) {
	p, err := c.conn.GetUnitPropertiesContext(ctx, name)
	if err != nil {
		return Unit{}, fmt.Errorf("ask systemd about %s: %w", name, err)
	}
	u := Unit{Name: name}
	u.Load, _ = p["LoadState"].(string)
	u.Active, _ = p["ActiveState"].(string)
	u.File, _ = p["UnitFileState"].(string)
	if us, _ := p["ActiveExitTimestamp"].(uint64); us > 0 {
		u.Left = time.UnixMicro(int64(us))
	}
	if u.Load == "not-found" {
		return u, nil
	}
	v, err := c.conn.GetUnitTypePropertyContext(ctx, name, "Service", "NRestarts")
	if err == nil { // systemd before 235 does not count
		u.Restarts, _ = v.Value.Value().(uint32)
	}
	return u, nil
}
