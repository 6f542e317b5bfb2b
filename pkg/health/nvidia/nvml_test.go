package nvidia

import (
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

func TestAnEventOfNVMLAndALineAreOneIncident(t *testing.T) {
	event, ok := XidRecord("0000:01:00", 79, boot.Add(time.Second))
	if !ok {
		t.Fatal("no record")
	}
	line := kernelRecord("NVRM: Xid (PCI:0000:01:00.0): 79, GPU has fallen off the bus.", 1.1)
	for _, records := range [][]host.Record{{event, line}, {line, event}} {
		wantTold(t, detectAll(Options{}, records...), "0000:01:00 NvidiaXID79Error Fatal")
	}
}

func TestEventsWhoseMeaningIsInTheTextAreLeftToTheLog(t *testing.T) {
	for _, code := range []int{0, -1, 74, 144, 150, 154} {
		if r, ok := XidRecord("0000:01:00", code, boot); ok {
			t.Errorf("Xid %d gives %q", code, r.Message)
		}
	}
}

func TestMemoryErrorEvents(t *testing.T) {
	got := detectAll(Options{}, MemoryErrorRecord("GPU-1", "00000000:3B:00.0", boot))
	wantTold(t, got, "GPU-1 (0000:3b:00) NvidiaDoubleBitError Fatal")
	checkFields(t, map[string]any{"gpu_uuid": "GPU-1", "pci": "0000:3b:00"}, got[0].Fields)
	if r, ok := health.NewCatalog().Lookup(got[0].Reason); !ok || r.Severity != got[0].Severity {
		t.Errorf("catalogue: %+v", r)
	}
	r := MemoryErrorRecord("GPU-1", "0000:3b:00", boot)
	r.Source = host.SourceKmsg
	if got := detectAll(Options{}, r); len(got) > 0 {
		t.Errorf("the same words in the kernel's log: %v", told(got))
	}
}

func TestVerdictsByReason(t *testing.T) {
	for reason, want := range map[string]Verdict{
		"NvidiaXID79Error": VerdictReboot, "NvidiaXID64Error": VerdictReplace, "NvidiaXID63Error": VerdictReset,
		"NvidiaXID48Error": VerdictReset, "NvidiaXID31Warning": VerdictWarn, "NvidiaXID149Error": VerdictReset,
		"NvidiaRowRemapFailure": VerdictReplace, "NvidiaRowRemapPending": VerdictReset, "NvidiaGPULost": VerdictReboot,
		"NvidiaRecoveryAction": VerdictReset, "NvidiaXIDxError": VerdictReset, "Other": VerdictWarn,
	} {
		severity := health.Warning
		if r, ok := health.NewCatalog().Lookup(reason); ok {
			severity = r.Severity
		} else if reason == "NvidiaXIDxError" {
			severity = health.Fatal
		}
		if got := VerdictOfReason(reason, severity); got != want {
			t.Errorf("%s: %s, want %s", reason, got, want)
		}
	}
}

func TestSubjectsSplit(t *testing.T) {
	for subject, want := range map[string][2]string{
		"GPU-1 (0000:3b:00)": {"GPU-1", "0000:3b:00"}, "0000:3b:00": {"", "0000:3b:00"},
		"nvswitch1 (0000:0a:00)": {}, "": {}, "python": {},
	} {
		if uuid, pci := SplitSubject(subject); uuid != want[0] || pci != want[1] {
			t.Errorf("SplitSubject(%q) = %q, %q", subject, uuid, pci)
		}
	}
}
