package health

import "testing"

func TestCatalogFindsTemplatedCodes(t *testing.T) {
	c := NewCatalog()
	for code, want := range map[string]Severity{
		"NvidiaXID79Error":          Fatal,
		"NvidiaXID999Warning":       Warning,
		"ContainerdRepeatedRestart": Warning,
		"ForkFailedOutOfPIDs":       Fatal,
	} {
		r, ok := c.Lookup(code)
		if !ok || r.Severity != want {
			t.Errorf("Lookup(%q) = %v, %v; want severity %s", code, r, ok, want)
		}
	}
	for _, code := range []string{"", "NvidiaXIDError", "NvidiaXID79Errors", "repeatedRestart"} {
		if r, ok := c.Lookup(code); ok {
			t.Errorf("Lookup(%q) = %q, want nothing", code, r.Code)
		}
	}
}
