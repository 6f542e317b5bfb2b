package nvidia

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// told says in short what was found.
func told(findings []health.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, fmt.Sprintf("%s %s %s", f.Subject, f.Reason, f.Severity))
	}
	return out
}

func wantTold(t *testing.T, got []health.Finding, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheWorstLeadsWhateverTheOrder(t *testing.T) {
	xid := func(code int) string { return fmt.Sprintf("NVRM: Xid (PCI:0000:01:00): %d, x", code) }
	for _, tt := range []struct {
		codes []int
		want  string
	}{
		{[]int{13, 43}, "NvidiaXID13Warning Warning"},
		{[]int{43, 13}, "NvidiaXID13Warning Warning"},
		{[]int{45, 45, 48}, "NvidiaXID48Error Fatal"},
		{[]int{119, 79}, "NvidiaXID79Error Fatal"},
		{[]int{79, 119, 45}, "NvidiaXID79Error Fatal"},
		{[]int{63, 48}, "NvidiaXID48Error Fatal"},
		{[]int{48, 171, 63}, "NvidiaXID48Error Fatal"},
		{[]int{31, 62, 45}, "NvidiaXID62Error Fatal"},
		{[]int{94, 64}, "NvidiaXID64Error Fatal"},
		{[]int{45, 999}, "NvidiaXID999Warning Warning"},
	} {
		var lines []string
		for _, code := range tt.codes {
			lines = append(lines, xid(code))
		}
		t.Run(fmt.Sprint(tt.codes), func(t *testing.T) { wantTold(t, detectLines(lines...), "0000:01:00 "+tt.want) })
	}
}

func TestEachGPUHasItsOwnIncident(t *testing.T) {
	var lines []string
	for link := range 7 {
		lines = append(lines, fmt.Sprintf("NVRM: Xid (PCI:000%d:00:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link %d(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)", link%4, link))
	}
	got := detectLines(lines...)
	wantTold(t, got,
		"0000:00:00 NvidiaXID74Error Fatal", "0001:00:00 NvidiaXID74Error Fatal",
		"0002:00:00 NvidiaXID74Error Fatal", "0003:00:00 NvidiaXID74Error Fatal")
	if diff := cmp.Diff([]int64{2, 6}, got[2].Fields["links"]); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestLinesMoreThanAWindowApartAreTwoIncidents(t *testing.T) {
	line := "NVRM: Xid (PCI:0000:01:00): 31, pid=1, name=a, Ch 1"
	got := detectAll(Options{}, kernelRecord(line, 1), kernelRecord(line, 2.9), kernelRecord("NVRM: Xid (PCI:0000:01:00): 13, x", 5.5))
	wantTold(t, got, "0000:01:00 NvidiaXID31Warning Warning", "0000:01:00 NvidiaXID13Warning Warning")
}

func TestTeardownGoesOnInTheIncident(t *testing.T) {
	records := []host.Record{kernelRecord("NVRM: Xid (PCI:0000:01:00): 62, x", 0)}
	for i := range 40 {
		records = append(records, kernelRecord("NVRM: Xid (PCI:0000:01:00): 45, pid=1, name=a, Ch 1", float64(i)*0.5))
	}
	wantTold(t, detectAll(Options{}, records...), "0000:01:00 NvidiaXID62Error Fatal")
}

func TestAShortHoldTellsEarlyAndOnlyAddsWhatIsWorse(t *testing.T) {
	d := NewDetector(Options{Hold: 100 * time.Millisecond})
	if got := d.Detect(kernelRecord("NVRM: Xid (PCI:0000:01:00): 31, pid=5, name=a, Ch 1", 1)); len(got) > 0 {
		t.Fatalf("told before the hold was over: %v", told(got))
	}
	if want := boot.Add(1100 * time.Millisecond); !d.Due().Equal(want) {
		t.Fatalf("due at %v, want %v", d.Due(), want)
	}
	wantTold(t, d.Flush(d.Due()), "0000:01:00 NvidiaXID31Warning Warning")
	if !d.Due().IsZero() {
		t.Errorf("still due at %v", d.Due())
	}
	d.Detect(kernelRecord("NVRM: Xid (PCI:0000:01:00): 43, pid=5, name=a, Ch 1", 1.2))
	if !d.Due().IsZero() {
		t.Errorf("a consequence makes it due again at %v", d.Due())
	}
	d.Detect(kernelRecord("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", 1.5))
	got := d.Flush(boot.Add(1600 * time.Millisecond))
	wantTold(t, got, "0000:01:00 NvidiaXID79Error Fatal")
	checkFields(t, asJSON(map[string]any{"preceding_xid": 31, "preceding_pid": 5}), got[0].Fields)
}

func TestHeldFindingsAreTheirOwnRecords(t *testing.T) {
	first := kernelRecord("NVRM: Xid (PCI:0000:01:00): 46", 1)
	first.Position = "kmsg/b/7"
	got := detectAll(Options{}, first, kernelRecord("unrelated", 60))
	if len(got) != 1 || got[0].Position != first.Position || got[0].Evidence != first.Message || !got[0].At.Equal(first.At) || got[0].Boot != "b" || got[0].Origin != health.OriginKernel {
		t.Errorf("found %+v", got)
	}
}

func TestAStormIsOneIncident(t *testing.T) {
	d := NewDetector(Options{Hold: 100 * time.Millisecond})
	var got []health.Finding
	for i := range 100_000 {
		got = append(got, d.Detect(kernelRecord(fmt.Sprintf("NVRM: Xid (PCI:0000:%02x:00): 79, GPU has fallen off the bus.", i%8), float64(i)/10_000))...)
	}
	got = append(got, d.Flush(time.Time{})...)
	if len(got) != 8 {
		t.Errorf("%d findings, want 8", len(got))
	}
}

func TestManyInventedDevicesStayBounded(t *testing.T) {
	d := NewDetector(Options{})
	for i := range 5000 {
		d.Detect(kernelRecord(fmt.Sprintf("NVRM: Xid (PCI:%04x:01:00): 31, pid=1, name=a, Ch 1", i), 1))
		d.Detect(kernelRecord(fmt.Sprintf("NVRM: GPU at PCI:%04x:01:00: GPU-00000000-0000-0000-0000-000000000000", i), 1))
	}
	if len(d.open) > maxOpen || len(d.recent) > maxIdentities || len(d.gpus.All()) > maxIdentities {
		t.Errorf("%d open, %d recent, %d known", len(d.open), len(d.recent), len(d.gpus.All()))
	}
}

func TestAClockSetBackHoldsNothing(t *testing.T) {
	d := NewDetector(Options{})
	d.Detect(kernelRecord("NVRM: Xid (PCI:0000:01:00): 79, x", 7200))
	wantTold(t, d.Detect(kernelRecord("unrelated", 1)), "0000:01:00 NvidiaXID79Error Fatal")
}

func TestCausedByBelongsToItsCause(t *testing.T) {
	got := detectLines(
		"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build",
		"NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)",
		"NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 00000001 caused by previous Xid 149",
		"NVRM: Xid (PCI:0000:ed:00): 45, pid=19, name=python3, Ch 0000000c caused by previous Xid 145")
	wantTold(t, got, "0000:dc:00 NvidiaXID149Error Fatal")
	checkFields(t, map[string]any{"consequence_xids": []any{45.0}, "unit": "NETIR_LINK_EVT", "link": 8.0}, got[0].Fields)
}
