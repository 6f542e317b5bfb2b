package systemd

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	godbus "github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"

	"github.com/ekslogs/ekslogs/pkg/host"
)

const containerdPath = "/org/freedesktop/systemd1/unit/containerd_2eservice"

// manager stands in for systemd on a bus of the test's own.
type manager struct{}

type listed struct {
	Name, Description, Load, Active, Sub, Followed string
	Path                                           godbus.ObjectPath
	JobID                                          uint32
	JobType                                        string
	JobPath                                        godbus.ObjectPath
}

// ListUnitsByPatterns is the manager's method of that name.
func (manager) ListUnitsByPatterns(_, _ []string) ([]listed, *godbus.Error) {
	return []listed{{Name: "containerd.service", Load: "loaded", Active: "active", Sub: "running", Path: containerdPath, JobPath: "/"}}, nil
}

// bus starts a message bus at the place of the host's.
func bus(t *testing.T, h *host.Host) string {
	t.Helper()
	path, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("no dbus-daemon on this machine: systemd has no stand-in")
	}
	socket := h.Path("/run/dbus/system_bus_socket")
	for _, dir := range []string{filepath.Dir(socket), h.Path("/run/systemd/system")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf := filepath.Join(t.TempDir(), "bus.conf")
	text := `<busconfig><type>custom</type><listen>unix:path=` + socket + `</listen><policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/><allow user="*"/></policy></busconfig>`
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "--config-file="+conf, "--nofork", "--print-address")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed, and says so
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

func TestUnits(t *testing.T) {
	dir, err := os.MkdirTemp("", "bus") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h, err := host.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), h); !errors.Is(err, ErrAbsent) {
		t.Fatalf("%v, want ErrAbsent", err)
	}
	conn, err := godbus.Connect(bus(t, h))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.Export(manager{}, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"); err != nil {
		t.Fatal(err)
	}
	left := time.Unix(1e9, 0)
	_, err = prop.Export(conn, containerdPath, prop.Map{
		"org.freedesktop.systemd1.Unit": {
			"LoadState": {Value: "loaded"}, "ActiveState": {Value: "active"}, "UnitFileState": {Value: "enabled"},
			"ActiveExitTimestamp": {Value: uint64(left.UnixMicro())},
		},
		"org.freedesktop.systemd1.Service": {"NRestarts": {Value: uint32(7)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName("org.freedesktop.systemd1", 0); err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found, err := c.Find(t.Context(), "*.service")
	if err != nil || len(found) != 1 || found[0].Name != "containerd.service" || found[0].Active != "active" {
		t.Fatalf("%+v, %v", found, err)
	}
	got, err := c.Unit(t.Context(), "containerd.service")
	want := Unit{Name: "containerd.service", Load: "loaded", Active: "active", File: "enabled", Restarts: 7, Left: left}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
