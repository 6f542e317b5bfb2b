package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/agent/config"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
)

func TestScanPutsTheWorstFirstAndGoesByTheConfig(t *testing.T) {
	c := health.NewCatalog()
	found := []health.Finding{
		check.Finding(c, "ClockUnsynchronized", "", "clock"), check.Finding(c, "ZramHighUsage", "zram0", "zram"),
		check.Finding(c, "InterfaceNotUp", "eth0", "down"), check.Finding(c, "ContainerdRepeatedRestart", "containerd.service", "again"),
	}
	cfg := &config.Config{Reasons: map[string]config.Reason{"ZramHighUsage": {Disabled: true}}}
	got := explain(cfg, c, found)
	if len(got) != 3 || got[0].Reason != "InterfaceNotUp" || got[0].Severity != health.Fatal || got[1].Reason != "ClockUnsynchronized" {
		t.Errorf("%+v", got)
	}
	for _, f := range got {
		if f.Meaning == "" || f.Action == "" {
			t.Errorf("%s has no advice", f.Reason)
		}
	}
}

func TestScanFlagsAddToTheConfig(t *testing.T) {
	cfg := &config.Config{Monitors: map[string]config.Monitor{"storage-monitor": {EssentialMounts: []string{"/a"}}}}
	o := scanOptions{mounts: []string{"/b"}, interfaces: []string{"eth1"}}
	o.addTo(cfg)
	if got := cfg.Monitor("storage").EssentialMounts; strings.Join(got, " ") != "/a /b" {
		t.Errorf("mounts %v", got)
	}
	if got := cfg.Monitor("networking").EssentialInterfaces; strings.Join(got, " ") != "eth1" {
		t.Errorf("interfaces %v", got)
	}
}

func TestScanTableLetsNoTextDriveTheTerminal(t *testing.T) {
	r := scanReport{Checks: 2, Blind: map[string]string{"iptables": "no\x1b[2J"}, Findings: []scanFinding{{
		Reason: "DiskSpaceLow", Severity: health.Warning, Subject: "/data\x1b[31m", Message: "full", Evidence: "0 of 5", Action: "make room",
	}}}
	var out bytes.Buffer
	if err := printScan(&out, []string{"COLUMNS=100"}, r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DiskSpaceLow", "0 of 5", "make room", "not checked: iptables", "1 wrong, by 2 checks"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("an escape in %q", out.String())
	}
}
