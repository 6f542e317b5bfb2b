package nvidia

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
)

func driverLine(version string) string {
	return "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  " + version + "  Thu Jan  1 00:00:00 UTC 2026"
}

func TestNVLink5VerdictDependsOnTheDriver(t *testing.T) {
	const (
		old = "NVRM: Xid (PCI:0000:00:08.0): 145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000040 0x00000000 0x00000000 0x00000000 0x00000000)"
		now = "NVRM: Xid (PCI:0000:00:08.0): 145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000004 0x00000040 0x00000000 0x00000000 0x00000000 0x00000000)"
	)
	for _, tt := range []struct {
		driver, line, want string
	}{
		{"570.133.20", old, "NvidiaXID145Error Fatal"},
		{"570.133.20", now, "NvidiaXID145Warning Warning"},
		{"575.57.08", old, "NvidiaXID145Warning Warning"},
		{"575.57.08", now, "NvidiaXID145Error Fatal"},
		{"580.65.06", now, "NvidiaXID145Error Fatal"},
		{"", old, "NvidiaXID145Warning Warning"},
		{"", now, "NvidiaXID145Warning Warning"},
	} {
		lines := []string{tt.line}
		if tt.driver != "" {
			lines = []string{driverLine(tt.driver), tt.line}
		}
		got := detectLines(lines...)
		wantTold(t, got, "0000:00:08 "+tt.want)
		checkFields(t, map[string]any{"driver_dependent": true, "unit": "RLW_REMAP", "link": 10.0, "pci": "0000:00:08.0"}, got[0].Fields)
	}
}

func TestTheDriverCanBeASetting(t *testing.T) {
	line := kernelRecord("NVRM: Xid (PCI:0000:00:08): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0 0x0 0x0 0x0)", 1)
	wantTold(t, detectAll(Options{Driver: 570}, line), "0000:00:08 NvidiaXID149Error Fatal")
	wantTold(t, detectAll(Options{Driver: 580}, line), "0000:00:08 NvidiaXID149Warning Warning")
}

func TestTheUnitsNameTellsTheDriver(t *testing.T) {
	for line, want := range map[string]string{
		"149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0 0x0 0x0 0x0)":  "NvidiaXID149Error Fatal",
		"149, NETIR_LINK_DOWN Fatal XC0 i0 Link 08 (0x00400011 0x00000000 0x0 0x0 0x0 0x0)": "NvidiaXID149Error Fatal",
		// The name of one layout and the bits of the other.
		"149, NETIR_LINK_DOWN Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x0 0x0 0x0 0x0)": "NvidiaXID149Warning Warning",
	} {
		wantTold(t, detectLines("NVRM: Xid (PCI:0000:00:08): "+line), "0000:00:08 "+want)
	}
}

func TestDriverBanners(t *testing.T) {
	for line, want := range map[string]int{
		driverLine("535.183.01"): 535,
		"NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64  580.65.06  Release Build  (dvs-builder@U22)": 580,
		"NVRM: loading NVIDIA UNIX aarch64 Kernel Module  575.51.03  Tue":                                       575,
		"NVRM: loading NVIDIA UNIX x86_64 Kernel Module":                                                        0,
	} {
		d := NewDetector(Options{})
		d.Detect(kernelRecord(line, 1))
		if d.driver != want {
			t.Errorf("%q: driver %d, want %d", line, d.driver, want)
		}
	}
}

// TestEveryNVLink5RowDecodes composes a line for each row of the table under each
// layout and reads it back.
func TestEveryNVLink5RowDecodes(t *testing.T) {
	tab, err := loadTables()
	if err != nil {
		t.Fatal(err)
	}
	for layout, driver := range []int{570, 580} {
		for i, row := range tab.nvlink5 {
			line := fmt.Sprintf("NVRM: Xid (PCI:0000:08:00): %d, %s Nonfatal XC0 i0 Link 3 (%#x %#x 0x0 0x0 0x0 0x0)",
				row.xid, row.units[0], row.intrinfo[layout].value, row.status)
			got := detectAll(Options{Driver: driver}, kernelRecord(line, 1))
			want := fmt.Sprintf("0000:08:00 NvidiaXID%dWarning Warning", row.xid)
			if strings.Contains(row.severity, "Fatal") && row.severity != "Non-fatal" && row.action == "RESET_GPU" {
				want = fmt.Sprintf("0000:08:00 NvidiaXID%dError Fatal", row.xid)
			}
			if len(got) != 1 || told(got)[0] != want {
				t.Errorf("row %d, driver %d: %q gives %v, want %s", i+2, driver, line, told(got), want)
			}
		}
	}
}

func TestSeveralErrorBitsAreAsBadAsTheWorst(t *testing.T) {
	line := func(xid int, unit string, status int) string {
		return fmt.Sprintf("NVRM: Xid (PCI:0000:08:00): %d, %s Fatal XC0 i0 Link 3 (0x00000004 %#x 0x0 0x0 0x0 0x0)", xid, unit, status)
	}
	got := detectAll(Options{Driver: 580}, kernelRecord(line(145, "RLW_REMAP", 0x41), 1))
	if len(got) != 1 || got[0].Severity != health.Fatal {
		t.Errorf("found %v, want a Fatal", told(got))
	}
	if bits.OnesCount(0x41) != 2 {
		t.Fatal("the test wants two bits")
	}
}

func TestAnUnreadableNVLink5TextIsAWarning(t *testing.T) {
	for _, text := range []string{"", "RLW_REMAP", "RLW_REMAP Nonfatal XC1 i0 Link 10 (0x82", "RLW_REMAP Nonfatal XC1 i0 Link 10 (zz yy)", "(((("} {
		got := detectLines("NVRM: Xid (PCI:0000:00:08): 145, " + text)
		wantTold(t, got, "0000:00:08 NvidiaXID145Warning Warning")
	}
}
