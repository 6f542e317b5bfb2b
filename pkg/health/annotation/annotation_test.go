package annotation

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatIsWrittenCanBeRead(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	to := at.Add(time.Hour)
	want := Health{
		Version: Version, AgentVersion: "v1.2.3",
		Monitors:  []Monitor{{Name: "kernel", Condition: "KernelReady", State: MonitorBlind, Since: at, Message: "kmsg"}},
		Findings:  []Finding{{Condition: "KernelReady", Reason: "ForkFailedOutOfPIDs", Severity: "Fatal", Subject: "kubelet", Since: at, Evidence: "<&>", Clears: "poll"}},
		GPUs:      []GPU{{UUID: "GPU-1", PCI: "0000:b3:00.0", Verdict: VerdictReset, Reason: "NvidiaXID79Error", Since: at}},
		Incidents: []Incident{{Reason: "KernelOops", Severity: "Warning", From: at, Last: at, To: &to, Count: 3}},
	}
	s, err := Encode(want)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s, "<&>") {
		t.Errorf("escaped for HTML, which wastes room: %s", s)
	}
	got, err := Decode(s)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestTheAnnotationNeverOutgrowsItsBound(t *testing.T) {
	var h Health
	h.AgentVersion = "v1.2.3"
	long := strings.Repeat("ü\x1b[31m\xff\n", 500)
	for i := range 200 {
		h.Findings = append(h.Findings, Finding{Reason: fmt.Sprintf("R%d", i), Severity: "Fatal", Subject: long, Evidence: long})
		h.Incidents = append(h.Incidents, Incident{Reason: fmt.Sprintf("R%d", i), Subject: long})
		h.GPUs = append(h.GPUs, GPU{UUID: "GPU-00000000-0000-0000-0000-000000000000", Verdict: VerdictOK})
	}
	h.GPUs[150].Verdict = VerdictReplace
	s, err := Encode(h)
	if err != nil {
		t.Fatal(err)
	}
	if len(s) > MaxBytes {
		t.Errorf("%d bytes, want at most %d", len(s), MaxBytes)
	}
	if strings.Contains(s, `\u001b`) {
		t.Error("escapes of the terminal were let through")
	}
	got, err := Decode(s)
	if err != nil {
		t.Fatal(err)
	}
	if got.Cut == 0 {
		t.Error("it does not say that something was left out")
	}
	if len(h.Findings) != 200 || h.Findings[0].Evidence != long {
		t.Error("the caller's value was changed")
	}
	sick := 0
	for _, g := range got.GPUs {
		if g.Verdict == VerdictReplace {
			sick++
		}
	}
	if sick != 1 {
		t.Errorf("%d sick GPUs are told of, want 1: the healthy ones go first", sick)
	}
}

func TestDecodeSaysWhatIsWrong(t *testing.T) {
	if _, err := Decode(`{"version":"v9"}`); !errors.Is(err, ErrVersion) {
		t.Errorf("unknown version: %v", err)
	}
	for _, s := range []string{"", "{", "[]", `{"version":1}`} {
		if _, err := Decode(s); err == nil {
			t.Errorf("Decode(%q) succeeded", s)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"version":"v1","findings":[{"reason":"A","severity":"Fatal","since":"2026-03-01T10:00:00Z"}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		h, err := Decode(s)
		if err != nil {
			return
		}
		if _, err := Encode(h); err != nil && len(s) < MaxBytes/2 {
			t.Errorf("cannot write what was read: %v", err)
		}
	})
}
