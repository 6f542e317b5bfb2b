package nvidia

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// logCase is a case of testdata/cases.json: what was reported in public about GPUs,
// and what it means.
type logCase struct {
	ID     string `json:"id"`
	Expect struct {
		Reason   string         `json:"reason"`
		Severity string         `json:"severity"`
		Fields   map[string]any `json:"fields"`
	} `json:"expect"`
	Messages []string  `json:"messages"`
	Seconds  []float64 `json:"seconds"`
	Facility int       `json:"facility"`
}

func readCases(t *testing.T) []logCase {
	t.Helper()
	b, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []logCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

var boot = time.Date(2025, 5, 1, 12, 0, 0, 0, time.UTC)

// kernelRecord is a record of the kernel's, seconds after boot.
func kernelRecord(message string, seconds float64) host.Record {
	return host.Record{
		Source: host.SourceKmsg, Message: message, Kernel: true, Priority: 3,
		At: boot.Add(time.Duration(seconds * float64(time.Second))), Boot: "b",
	}
}

// detectAll runs records through a fresh detector to the end of the log.
func detectAll(o Options, records ...host.Record) []health.Finding {
	d := NewDetector(o)
	var out []health.Finding
	for _, r := range records {
		out = append(out, d.Detect(r)...)
	}
	return append(out, d.Flush(time.Time{})...)
}

// detectLines does so with lines of the kernel's that were printed at once.
func detectLines(lines ...string) []health.Finding {
	records := make([]host.Record, len(lines))
	for i, line := range lines {
		records[i] = kernelRecord(line, 1)
	}
	return detectAll(Options{}, records...)
}

func TestPublicCases(t *testing.T) {
	for _, c := range readCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			records := make([]host.Record, len(c.Messages))
			for i, m := range c.Messages {
				records[i] = kernelRecord(m, 1)
				if c.Seconds != nil {
					records[i] = kernelRecord(m, c.Seconds[i])
				}
				records[i].Facility, records[i].Kernel = c.Facility, c.Facility == host.FacilityKernel
			}
			checkCase(t, c, detectAll(Options{}, records...))
		})
	}
}

func checkCase(t *testing.T, c logCase, got []health.Finding) {
	t.Helper()
	if c.Expect.Severity == "warning-at-most" {
		for _, f := range got {
			if f.Severity == health.Fatal {
				t.Errorf("%s is Fatal", f.Reason)
			}
			checkFields(t, c.Expect.Fields, f.Fields)
		}
		return
	}
	if c.Expect.Reason == "none" {
		if len(got) > 0 {
			t.Errorf("found %v, want nothing", got)
		}
		return
	}
	matching := 0
	for _, f := range got {
		if f.Reason != c.Expect.Reason {
			if f.Severity == health.Fatal {
				t.Errorf("also found the Fatal %s", f.Reason)
			}
			continue
		}
		matching++
		want := map[string]health.Severity{"fatal": health.Fatal, "warning": health.Warning, "none": health.Info}[c.Expect.Severity]
		if f.Severity != want {
			t.Errorf("severity of %s = %s, want %s", f.Reason, f.Severity, want)
		}
		if matching == 1 {
			checkFields(t, c.Expect.Fields, f.Fields)
		}
	}
	if matching == 0 {
		t.Errorf("found %v, want %s", got, c.Expect.Reason)
	}
}

// checkFields compares by JSON, which is how the fields leave the program.
func checkFields(t *testing.T, want, got map[string]any) {
	t.Helper()
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var have map[string]any
	if err := json.Unmarshal(b, &have); err != nil {
		t.Fatal(err)
	}
	for k, v := range want {
		if diff := cmp.Diff(v, have[k]); diff != "" {
			t.Errorf("field %s (-want +got):\n%s\nall: %s", k, diff, b)
		}
	}
}

func TestReasonsAndSeveritiesAreThoseOfTheCatalogue(t *testing.T) {
	catalog := health.NewCatalog()
	for code := range NewDetector(Options{}).tables.xids {
		if code == 154 || code >= 144 && code <= 150 || code == 74 {
			continue // their severity depends on the text
		}
		for _, f := range detectLines("NVRM: Xid (PCI:0000:01:00): " + itoa(code) + ", text") {
			r, ok := catalog.Lookup(f.Reason)
			if !ok || r.Severity != f.Severity || r.Condition != f.Condition {
				t.Errorf("Xid %d gives %s %s; catalogue: %v %+v", code, f.Reason, f.Severity, ok, r)
			}
			if want := strings.Contains(f.Reason, "Error"); want != (f.Severity == health.Fatal) {
				t.Errorf("%s is %s", f.Reason, f.Severity)
			}
		}
	}
}

// fatalXids are the codes for which the EKS contract replaces the node.
var fatalXids = []int{46, 48, 54, 62, 63, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 142, 143, 151, 155, 156, 158}

func TestFatalCodesAreTheContracts(t *testing.T) {
	want := map[int]bool{}
	for _, code := range fatalXids {
		want[code] = true
	}
	for code, info := range NewDetector(Options{}).tables.xids {
		if (info.severity == health.Fatal) != want[code] {
			t.Errorf("Xid %d is %s", code, info.severity)
		}
	}
}
