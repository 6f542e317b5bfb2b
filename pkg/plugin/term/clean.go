package term

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes text from a node or the API server fit for one line of a terminal:
// escape sequences are removed whole, line breaks and tabs become spaces, and other
// control characters, bidirectional overrides and invalid UTF-8 become U+FFFD.
func Clean(s string) string {
	return clean(s, false)
}

// CleanLines is Clean for text of several lines: line breaks and tabs stay.
func CleanLines(s string) string {
	return clean(s, true)
}

func clean(s string, lines bool) string {
	if plain(s) {
		return s
	}
	// ansi.Strip also takes C0 controls out, line breaks among them: one line at a
	// time keeps those, and keeps a broken escape from eating the next line.
	parts := strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n")
	for i, part := range parts {
		fields := strings.Split(part, "\t")
		for j, f := range fields {
			fields[j] = strings.Map(visible, ansi.Strip(strings.ToValidUTF8(f, "\uFFFD")))
		}
		if lines {
			parts[i] = strings.Join(fields, "\t")
		} else {
			parts[i] = strings.Join(fields, " ")
		}
	}
	if lines {
		return strings.Join(parts, "\n")
	}
	return strings.TrimRight(strings.Join(parts, " "), " ")
}

func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func visible(r rune) rune {
	switch {
	case unicode.IsControl(r):
		return unicode.ReplacementChar
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		// They reorder what stands after them, and so can forge a line.
		return unicode.ReplacementChar
	}
	return r
}

// Width is how many columns s takes, with wide runes as two and escapes as none.
func Width(s string) int { return ansi.StringWidth(s) }

// Fit cuts s to at most columns, with "…" for what is gone. Escapes in it survive.
// Columns of 0 or less mean no limit.
func Fit(s string, columns int) string {
	if columns <= 0 {
		return s
	}
	return ansi.Truncate(s, columns, "…")
}

// Pad fills s with spaces up to columns.
func Pad(s string, columns int) string {
	if n := columns - Width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}
