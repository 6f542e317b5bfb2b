package health

import (
	"os"
	"strings"
	"testing"
)

func TestEveryReasonSaysWhatItMeansAndWhatToDo(t *testing.T) {
	advice := NewAdvice()
	seen := map[string]bool{}
	for _, r := range NewCatalog().Reasons() {
		a, ok := advice[r.Code]
		if !ok || len(a.Meaning) < 20 || len(a.Action) < 10 {
			t.Errorf("%s: no advice in advice.tsv", r.Code)
		}
		seen[r.Code] = true
	}
	for code := range advice {
		if !seen[code] {
			t.Errorf("advice.tsv explains %s, which the catalogue does not have", code)
		}
	}
}

// Codes and severities are public API: Karpenter's and EKS's repair act on them. To
// change one is a decision: change the pin with it, and say so in CHANGELOG.md.
func TestCodesAndSeveritiesArePinned(t *testing.T) {
	data, err := os.ReadFile("testdata/pinned.tsv")
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) == 3 {
			pinned[f[1]] = f[0] + " " + f[2]
		}
	}
	for _, r := range NewCatalog().Reasons() {
		cond := string(r.Condition)
		if cond == "" {
			cond = "-"
		}
		got := cond + " " + string(r.Severity)
		if want, ok := pinned[r.Code]; !ok {
			t.Errorf("%s is new: pin it in testdata/pinned.tsv as %q", r.Code, got)
		} else if got != want {
			t.Errorf("%s is %s, pinned as %s", r.Code, got, want)
		}
		delete(pinned, r.Code)
	}
	for code := range pinned {
		t.Errorf("%s is gone from the catalogue", code)
	}
}
