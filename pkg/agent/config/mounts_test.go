package config

import (
	"strings"
	"testing"
)

func TestEssentialMountsBelongToStorageAndAreAbsolute(t *testing.T) {
	for text, want := range map[string]string{
		"monitors:\n  storage: {essentialMounts: [/data]}\n":    "",
		"monitors:\n  storage: {essentialMounts: [data]}\n":     "absolute path",
		"monitors:\n  networking: {essentialMounts: [/data]}\n": "belongs to storage",
	} {
		c, err := Parse("c.yaml", []byte(text))
		switch {
		case want == "" && (err != nil || len(c.Monitor("storage").EssentialMounts) != 1):
			t.Errorf("%s: %+v, %v", text, c, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "line ")):
			t.Errorf("%s: %v, want %q and the line", text, err, want)
		}
	}
}
