package journal

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends the text of a JSON string. A malformed escape stays as it is.
func appendUnescaped(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '\\')
		if i < 0 || i+1 >= len(b) {
			return append(dst, b...)
		}
		dst = append(dst, b[:i]...)
		c := b[i+1]
		b = b[i+2:]
		switch c {
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'u':
			var r rune
			var ok bool
			if r, b, ok = hexRune(b); !ok {
				dst = append(dst, '\\', 'u')
				continue
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, '\\', c)
		}
	}
}

// hexRune takes the four digits after \u, and the other half of a surrogate pair.
func hexRune(b []byte) (rune, []byte, bool) {
	r, ok := hex4(b)
	if !ok {
		return 0, b, false
	}
	b = b[4:]
	if utf16.IsSurrogate(r) {
		if len(b) >= 6 && b[0] == '\\' && b[1] == 'u' {
			if low, ok := hex4(b[2:]); ok {
				if full := utf16.DecodeRune(r, low); full != utf8.RuneError {
					return full, b[6:], true
				}
			}
		}
		return utf8.RuneError, b, true
	}
	return r, b, true
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}
