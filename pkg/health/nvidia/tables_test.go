package nvidia

import (
	"strconv"
	"strings"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestEveryRowOfTheTablesParses(t *testing.T) {
	tab, err := loadTables()
	if err != nil {
		t.Fatal(err)
	}
	rows := func(tsv string) int { return strings.Count(strings.TrimSpace(tsv), "\n") }
	if got, want := len(tab.xids), rows(xidTSV); got != want {
		t.Errorf("%d Xids of %d rows", got, want)
	}
	if got, want := len(tab.sxids), rows(sxidTSV); got != want {
		t.Errorf("%d SXids of %d rows", got, want)
	}
	if got, want := len(tab.nvlink5), rows(nvlink5TSV); got != want {
		t.Errorf("%d NVLink5 rows of %d", got, want)
	}
	for code := 1; code <= 172; code++ {
		if tab.xids[code].code != code {
			t.Errorf("Xid %d is missing", code)
		}
	}
}

func TestMalformedBitPatternsAreRefused(t *testing.T) {
	for _, s := range []string{"", "----", strings.Repeat("x", 32), strings.Repeat("0", 33)} {
		if p, err := parseBitPattern(s); err == nil {
			t.Errorf("parseBitPattern(%q) = %v", s, p)
		}
	}
}
