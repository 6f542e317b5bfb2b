package nvidia

import (
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

func recoveryLine(pci, change string) string {
	return "NVRM: Xid (PCI:" + pci + "): 154, GPU recovery action changed from " + change
}

func TestRecoveryActionGoesByItsNumber(t *testing.T) {
	for change, want := range map[string]string{
		"0x0 (None) to 0x1 (GPU Reset Required)":   "NvidiaRecoveryAction Fatal",
		"0x0 (None) to 0x1 (PF FLR)":               "NvidiaRecoveryAction Fatal",
		"0x0 (None) to 0x2 (Node Reboot Required)": "NvidiaRecoveryAction Fatal",
		"0x0 (None) to 0x2 (OS Reboot)":            "NvidiaRecoveryAction Fatal",
		"0x0 (None) to 0x3 (Drain P2P)":            "NvidiaRecoveryAction Warning",
		"0x1 (x) to 0x4 (Drain and Reset)":         "NvidiaRecoveryAction Fatal",
		"0x0 (None) to 0x4":                        "NvidiaRecoveryAction Fatal",
		"0x0 (None) to 0x5 (Recover IMEX Domain)":  "NvidiaRecoveryAction Warning",
		"0x0 (None) to 0x7 (System Reboot)":        "NvidiaRecoveryAction Fatal",
		"0x0 (None) to 0x9 (Something New)":        "NvidiaXID154Warning Warning",
		"0x2 (OS Reboot) to 0x0 (None)":            "NvidiaXID154Warning Info",
		"0x1 (":                                    "NvidiaXID154Warning Warning",
		"0x0 (None) to (GPU Reset Required)":       "NvidiaXID154Warning Warning",
	} {
		t.Run(change, func(t *testing.T) {
			got := detectLines(recoveryLine("0000:01:00", change))
			wantTold(t, got, "0000:01:00 "+want)
			if got[0].Clears != (got[0].Severity == health.Info) {
				t.Errorf("Clears = %v for %s", got[0].Clears, got[0].Severity)
			}
		})
	}
}

func TestRecoveryBelongsToItsFault(t *testing.T) {
	got := detectLines("NVRM: Xid (PCI:0000:01:00): 145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x4 0x1 0x0 0x0 0x0 0x0)",
		recoveryLine("0000:01:00", "0x0 (None) to 0x1 (GPU Reset Required)"))
	wantTold(t, got, "0000:01:00 NvidiaRecoveryAction Fatal")
	checkFields(t, map[string]any{"recovery_action": 1.0, "root_xid": 145.0, "verdict": "reset"}, got[0].Fields)

	got = detectLines("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
		recoveryLine("0000:01:00", "0x0 (None) to 0x2 (OS Reboot)"))
	wantTold(t, got, "0000:01:00 NvidiaXID79Error Fatal")
	checkFields(t, map[string]any{"recovery_action": 2.0, "recovery_text": "OS Reboot", "verdict": "reboot"}, got[0].Fields)
}

func TestRecoveredTellsTheFaultFirst(t *testing.T) {
	got := detectLines("NVRM: Xid (PCI:0000:01:00): 119, pid=1, name=a, Timeout",
		"NVRM: Xid (PCI:0000:02:00): 119, pid=1, name=a, Timeout",
		recoveryLine("0000:01:00", "0x1 (x) to 0x0 (None)"))
	wantTold(t, got, "0000:01:00 NvidiaXID119Error Fatal", "0000:01:00 NvidiaXID154Warning Info", "0000:02:00 NvidiaXID119Error Fatal")
	if !got[1].Clears || got[1].Subject != got[0].Subject {
		t.Errorf("the recovery does not end the fault: %+v", got[1])
	}
}

func userRecord(message string) host.Record {
	r := kernelRecord(message, 1)
	r.Kernel, r.Facility = false, 1
	return r
}

func TestWhatUserSpaceWroteIsAWarningAtMost(t *testing.T) {
	for _, line := range []string{
		"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
		"nvidia-nvswitch0: SXid (PCI:0000:0a:00.0): 12020, Fatal, Link 1 egress sequence ID error",
		recoveryLine("0000:3b:00", "0x0 (None) to 0x2 (x)"),
		"NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b5) installed in this system has\nNVRM: fallen off the bus and is not responding to commands.",
	} {
		got := detectAll(Options{}, userRecord(line))
		if len(got) != 1 || got[0].Severity != health.Warning || got[0].Origin != health.OriginUserspace || got[0].Fields["origin"] != "userspace" {
			t.Errorf("%q gives %+v", line, got)
		}
	}
}

func TestUserSpaceCannotTouchWhatTheKernelSaid(t *testing.T) {
	d := NewDetector(Options{})
	d.Detect(userRecord("NVRM: GPU at PCI:0000:3b:00: GPU-ffffffff-0000-0000-0000-000000000000"))
	d.Detect(userRecord(driverLine("580.1")))
	d.Detect(kernelRecord("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", 1))
	got := d.Detect(userRecord(recoveryLine("0000:3b:00", "0x2 (x) to 0x0 (None)")))
	for _, f := range got {
		if f.Clears {
			t.Errorf("user space cleared a fault: %+v", f)
		}
	}
	wantTold(t, d.Flush(boot.Add(1e12)), "0000:3b:00 NvidiaXID79Error Fatal")
	if d.driver != 0 {
		t.Errorf("driver = %d", d.driver)
	}
}

func TestServicesThatQuoteTheKernelAreNotBelieved(t *testing.T) {
	for _, source := range []host.Source{host.SourceJournal, host.SourceFile} {
		r := host.Record{Source: source, Message: "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", Unit: "x.service", At: boot}
		if got := detectAll(Options{}, r); len(got) > 0 {
			t.Errorf("%s: %v", source, told(got))
		}
	}
}
