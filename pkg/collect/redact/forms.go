package redact

import "bytes"

// matchJWT: three base64url parts with dots between, the first of which is JSON.
func matchJWT(b []byte, i int) (match, bool) {
	if alnumChars[at(b, i-1)] {
		return match{}, false
	}
	// Header and payload must be there; a payload that fills the buffer counts.
	rest := b[i:]
	head := jwtPart(rest)
	if head < 10 || at(rest, head) != '.' {
		return match{}, false
	}
	payload := jwtPart(rest[head+1:])
	end := head + 1 + payload
	if payload < 4 || end < len(rest) && rest[end] != '.' {
		return match{}, false
	}
	return match{kind: kindJWT, start: i, end: ender{how: endAt, stop: jwtStop}}, true
}

func jwtPart(b []byte) int {
	for i, c := range b {
		if jwtStop[c] || c == '.' {
			return i
		}
	}
	return len(b)
}

// matchAWSKey: the id of a long-term (AKIA) or temporary (ASIA) access key, 20
// characters; the form is documented under "IAM identifiers".
func matchAWSKey(b []byte, i int) (match, bool) {
	const length = 20
	if alnumChars[at(b, i-1)] || alnumChars[at(b, i+length)] || len(b) < i+length {
		return match{}, false
	}
	for _, c := range b[i : i+length] {
		if c < '0' || c > 'Z' || c > '9' && c < 'A' {
			return match{}, false
		}
	}
	if b[i+3] != 'A' {
		return match{}, false
	}
	return match{kind: kindAWSKeyID, start: i, end: ender{how: endAt, stop: alnumChars.not()}}, true
}

// matchPEM: what is between the BEGIN and END lines of a private key.
func matchPEM(b []byte, i int) (match, bool) {
	const begin, dashes = "-----BEGIN ", "-----"
	if !bytes.HasPrefix(b[i:], []byte(begin)) {
		return match{}, false
	}
	label := b[i+len(begin):]
	label = label[:min(len(label), 64)]
	n := bytes.Index(label, []byte(dashes))
	if n < 0 || !bytes.Contains(label[:n], []byte("PRIVATE KEY")) {
		return match{}, false
	}
	start := i + len(begin) + n + len(dashes)
	for at(b, start) == '\r' || at(b, start) == '\n' {
		start++
	}
	return match{kind: kindPrivateKey, start: start, end: ender{how: endPEM}}, true
}

// Beginnings of private keys in PEM in base64, as kubeconfigs and secrets hold
// them: "-----BEGIN PRIVATE KEY", "-----BEGIN RSA PRI…", "-----BEGIN EC PRI…",
// "-----BEGIN OPENSSH PRI…".
var pem64 = []string{
	"LS0tLS1CRUdJTiBQUklWQVRFIEtFW",
	"LS0tLS1CRUdJTiBSU0EgUFJJ",
	"LS0tLS1CRUdJTiBFQyBQUklW",
	"LS0tLS1CRUdJTiBPUEVOU1NIIFBS",
}

func matchPEM64(b []byte, i int) (match, bool) {
	for _, p := range pem64 {
		if bytes.HasPrefix(b[i:], []byte(p)) {
			return match{kind: kindPrivateKey, start: i, end: ender{how: endAt, stop: base64Stop}}, true
		}
	}
	return match{}, false
}

// matchBearer: "Bearer " and a word that is no word of a sentence.
func matchBearer(b []byte, i int) (match, bool) {
	const word = "bearer "
	if !hasFold(b[i:], word) || alnumChars[at(b, i-1)] {
		return match{}, false
	}
	start := i + len(word)
	if !secretLike(b[start:], bearerStop) {
		return match{}, false
	}
	return match{kind: kindAuthorization, start: start, end: ender{how: endAt, stop: bearerStop}}, true
}

// secretLike says that the word at the beginning of b is too long and too mixed
// for one of a sentence.
func secretLike(b []byte, stop *set) bool {
	digits := false
	for i, c := range b {
		if stop[c] || i == lookahead {
			return digits && i >= 16
		}
		digits = digits || c >= '0' && c <= '9'
	}
	return digits && len(b) >= 16
}

// matchUserinfo: the password of "scheme://user:password@host".
func matchUserinfo(b []byte, i int) (match, bool) {
	rest := b[i:]
	if !bytes.HasPrefix(rest, []byte("://")) {
		return match{}, false
	}
	colon := -1
	for k := 3; k < min(len(rest), lookahead); k++ {
		switch c := rest[k]; {
		case c == ':' && colon < 0:
			colon = k
		case c == '@':
			if colon < 0 || colon+1 == k {
				return match{}, false
			}
			return match{kind: kindPassword, start: i + colon + 1, end: ender{how: endAt, stop: setAt}}, true
		case c <= ' ' || c == '/' || c == '"' || c == '\'' || c == '?' || c == '#' || c == '\\':
			return match{}, false
		}
	}
	return match{}, false
}

var setAt = setOf("@")
