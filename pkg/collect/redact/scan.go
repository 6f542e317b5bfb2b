package redact

import "bytes"

// Each kind of secret is recognised by one byte that is seldom in text.
const (
	trigNone = iota
	trigSeparator
	trigDash
	trigJWT
	trigAWS
	trigPEM64
	trigBearer
	trigPercent
)

var triggers = [256]uint8{
	':': trigSeparator, '=': trigSeparator,
	'-': trigDash,
	'J': trigJWT,
	'I': trigAWS,
	'L': trigPEM64,
	'B': trigBearer, 'b': trigBearer,
	'%': trigPercent,
}

// nextTrigger returns the first place at or after i that may be of interest, or
// len(b). It is the hot loop: what is cheap to rule out is ruled out here.
func nextTrigger(b []byte, i int) int {
	for ; i < len(b); i++ {
		switch triggers[b[i]] {
		case trigNone:
			continue
		case trigSeparator:
			if i == 0 {
				continue
			}
			p := b[i-1]
			if lastLetters[p] || p == '"' || p == '\'' || p == ' ' || p == 's' || p == 'p' || p == 'h' {
				return i
			}
		case trigDash:
			if i+2 < len(b) && b[i+1] != '-' || i > 0 && b[i-1] == '-' {
				continue
			}
			return i
		case trigJWT:
			if i >= 2 && b[i-1] == 'y' && b[i-2] == 'e' {
				return i
			}
		case trigAWS:
			if i >= 2 && b[i-2] == 'A' && (b[i-1] == 'K' || b[i-1] == 'S') {
				return i
			}
		case trigPEM64:
			if i+1 >= len(b) || b[i+1] == 'S' {
				return i
			}
		case trigBearer:
			if i+1 >= len(b) || b[i+1] == 'e' || b[i+1] == 'E' {
				return i
			}
		case trigPercent:
			if i+1 >= len(b) || b[i+1] == '3' {
				return i
			}
		}
	}
	return len(b)
}

// match looks for a secret that is recognised by the byte at i.
func (w *Writer) match(i int) (match, bool) {
	b := w.buf
	switch triggers[b[i]] {
	case trigSeparator:
		return matchNamed(b, i, i+1)
	case trigPercent:
		// A separator in a URL within a URL: %3D and %3A.
		if hasFold(b[i:], "%3d") {
			return matchEncoded(b, i, i+3)
		}
	case trigDash:
		if m, ok := matchPEM(b, i); ok {
			return m, true
		}
		return matchFlag(b, i)
	case trigJWT:
		return matchJWT(b, i-2)
	case trigAWS:
		return matchAWSKey(b, i-2)
	case trigPEM64:
		return matchPEM64(b, i)
	case trigBearer:
		return matchBearer(b, i)
	}
	return match{}, false
}

func hasFold(b []byte, s string) bool {
	return len(b) >= len(s) && bytes.EqualFold(b[:len(s)], []byte(s))
}

func at(b []byte, i int) byte {
	if i < 0 || i >= len(b) {
		return 0
	}
	return b[i]
}
