package redact

import "bytes"

// ender finds where a secret ends, over as many buffers as it takes.
type ender struct {
	how endKind
	// stop are the bytes that end it (endAt).
	stop *set
	// quote is the closing quote, and escapes how many backslashes stand before it:
	// one in JSON within JSON (endQuote).
	quote   byte
	escapes int
	// run counts the backslashes just read.
	run int
	// seen counts bytes of a private key.
	seen int
}

type endKind uint8

const (
	endAt endKind = iota
	endQuote
	endPEM
)

const (
	pemEnd = "-----END"
	// maxPEM is how much text a BEGIN line without an END line may cost. A key of
	// 16384 bits takes 13 kB.
	maxPEM = 32 << 10
)

// find returns how many bytes of b belong to the secret, and whether its end was
// found. At the end of the text (final) it ends in any case.
func (e *ender) find(b []byte, final bool) (n int, done bool) {
	switch e.how {
	case endQuote:
		return e.findQuote(b, final)
	case endPEM:
		if i := bytes.Index(b, []byte(pemEnd)); i >= 0 && e.seen+i <= maxPEM {
			return i, true
		}
		if e.seen+len(b) > maxPEM {
			return max(0, maxPEM-e.seen), true
		}
		if final {
			return len(b), true
		}
		// The rest may be the beginning of the END line.
		n = max(0, len(b)-len(pemEnd))
		e.seen += n
		return n, false
	}
	for i, c := range b {
		if e.stop[c] {
			return i, true
		}
	}
	return len(b), final
}

// findQuote finds the closing quote. A quote within the secret has more, and other
// numbers of, backslashes before it than the opening one had.
func (e *ender) findQuote(b []byte, final bool) (int, bool) {
	for i, c := range b {
		switch c {
		case '\\':
			e.run++
			continue
		case '\n':
			return i, true
		case e.quote:
			if e.run%(2*(e.escapes+1)) == e.escapes || e.quote == '\'' {
				return i, true
			}
		}
		e.run = 0
	}
	return len(b), final
}

// trim takes from the end of a secret what belongs to the text around it.
func (e *ender) trim(v []byte) []byte {
	switch e.how {
	case endQuote:
		for k := 0; k < e.escapes && bytes.HasSuffix(v, []byte(`\`)); k++ {
			v = v[:len(v)-1]
		}
	case endAt:
		v = bytes.TrimRight(v, " \t\r,;)]}\\")
	case endPEM:
		v = bytes.TrimRight(v, " \t\r\n")
	}
	return v
}

// set is a set of bytes.
type set [256]bool

func setOf(chars string) *set {
	s := &set{}
	for i := range len(chars) {
		s[chars[i]] = true
	}
	return s
}

// not returns the bytes that are not in s.
func (s *set) not() *set {
	n := &set{}
	for i := range s {
		n[i] = !s[i]
	}
	return n
}

const alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Sets that never change after start.
var (
	wordChars   = setOf(alnum + "_-.")
	jwtStop     = setOf(alnum + "_-.").not()
	base64Stop  = setOf(alnum + "+/=").not()
	alnumChars  = setOf(alnum)
	lineStop    = setOf("\n\r\x00")
	spaceStop   = setOf(" \t\n\r\x00\"'`")
	queryStop   = setOf(" \t\n\r\x00\"'`&<>\\")
	flowStop    = setOf(" \t\n\r\x00\"'`,;}])")
	headerStop  = setOf("\n\r\x00\"'`]")
	bearerStop  = setOf(alnum + "+/=_-.~").not()
	percentStop = setOf(" \t\n\r\x00\"'`&<>%")
)
