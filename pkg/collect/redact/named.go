package redact

import "bytes"

// place says how a name stands in the text: what follows from it is how sure we
// are that a value follows, and where it ends.
type place struct {
	name []byte
	// quoted: the name has quotes of its own, as in JSON.
	quoted bool
	// quote is the quote that was opened right before the name and is not closed
	// before the separator, with so many escapes: "NAME=value of words".
	quote   byte
	escapes int
	// query: the name follows "?" or "&".
	query bool
	// lineStart: nothing but indentation, "- " or "export " is before it.
	lineStart bool
	// flow: it follows "{", "," or the like.
	flow bool
}

// matchNamed: NAME=value, name: value, "name":"value" and their like. The
// separator is b[sep:after].
func matchNamed(b []byte, sep, after int) (match, bool) {
	if b[sep] == ':' {
		if m, ok := matchUserinfo(b, sep); ok {
			return m, true
		}
	}
	p, ok := placeOf(b, sep)
	if !ok {
		return match{}, false
	}
	kind, ok := kindOf(p.name)
	if !ok {
		if p.quoted && string(p.name) == "auth" {
			return valueOf(b, after, kindRegistry, p, b[sep])
		}
		if string(p.name) == "name" && b[sep] == ':' {
			return matchPair(b, after)
		}
		return match{}, false
	}
	if p.lineStart && string(p.name) == "passwd" && nameService(b[skipBlank(b, after):]) {
		return match{}, false
	}
	return valueOf(b, after, kind, p, b[sep])
}

// nameService says that a line "passwd: files systemd" is of nsswitch.conf(5).
func nameService(b []byte) bool {
	for _, s := range []string{"files", "compat", "sss", "systemd", "db"} {
		if bytes.HasPrefix(b, []byte(s)) && (len(b) == len(s) || b[len(s)] == ' ' || b[len(s)] == '\n') {
			return true
		}
	}
	return false
}

// matchEncoded: NAME%3Dvalue in a URL within a URL.
func matchEncoded(b []byte, sep, after int) (match, bool) {
	p, ok := placeOf(b, sep)
	if !ok {
		return match{}, false
	}
	kind, ok := kindOf(p.name)
	if !ok {
		return match{}, false
	}
	return match{kind: kind, start: after, end: ender{how: endAt, stop: percentStop}}, true
}

// placeOf reads the name before the separator at sep.
func placeOf(b []byte, sep int) (place, bool) {
	var p place
	end := sep
	for k := 0; k < 8 && end > 0 && (b[end-1] == ' ' || b[end-1] == '\t'); k++ {
		end--
	}
	closing := at(b, end-1)
	if closing == '"' || closing == '\'' {
		p.quoted = true
		end--
		for end > 0 && b[end-1] == '\\' {
			end--
		}
	}
	start := end
	for start > 0 && end-start < 128 && wordChars[b[start-1]] {
		start--
	}
	if start == end {
		return p, false
	}
	p.name = bytes.TrimLeft(b[start:end], "-")
	before := start - 1
	if q := at(b, before); q == '"' || q == '\'' {
		if !p.quoted {
			p.quote = q
		}
		before--
		for at(b, before) == '\\' {
			before--
			p.escapes++
		}
		if p.quoted {
			p.escapes = 0
		}
	}
	switch at(b, before) {
	case '?', '&':
		p.query = true
	case '{', ',', '[', '(', ';':
		p.flow = true
	}
	p.lineStart, p.flow = lineStart(b, before, p.flow)
	return p, true
}

// lineStart looks at what is before a name: indentation, "- ", "export " and "> "
// of a quoted header count as nothing; ", " and "{ " as flow.
func lineStart(b []byte, i int, flow bool) (bool, bool) {
	for i >= 0 && (b[i] == ' ' || b[i] == '\t' || b[i] == '-' || b[i] == '>') {
		i--
	}
	switch at(b, i) {
	case '\n', '\r', 0:
		return true, flow
	case '{', ',', '[', '(', ';':
		return false, true
	}
	const export = "export"
	if i >= len(export)-1 && string(b[i-len(export)+1:i+1]) == export {
		return true, flow
	}
	return false, flow
}

// valueOf reads the value after a separator.
func valueOf(b []byte, i int, kind string, p place, sep byte) (match, bool) {
	i = skipBlank(b, i)
	list := at(b, i) == '[' && kind == kindAuthorization
	if list {
		i = skipBlank(b, i+1)
	}
	e := p.ender(sep, kind)
	escapes := 0
	for at(b, i+escapes) == '\\' {
		escapes++
	}
	if c := at(b, i+escapes); c == '"' || c == '\'' {
		e = ender{how: endQuote, quote: c, escapes: escapes}
		i += escapes + 1
	} else if !p.sure(sep) && kind != kindPassword && kind != kindAuthorization && !secretLike(b[i:], flowStop) {
		// A sentence: "invalid bearer token: x509: certificate has expired".
		return match{}, false
	}
	if v := at(b, i); v == '{' || v == '\n' || v == '\r' || v == '[' || v == '$' && (at(b, i+1) == '{' || at(b, i+1) == '(') {
		return match{}, false
	}
	if kind == kindAuthorization {
		n := schemeLen(b[i:])
		sure := n > 0 || p.quoted || p.lineStart || list
		if !sure && !secretLike(b[i:], flowStop) {
			return match{}, false
		}
		i += n
	}
	if kind == kindRegistry && !secretLike(b[i:], base64Stop) {
		return match{}, false
	}
	return match{kind: kind, start: i, end: e}, true
}

// sure says that a value follows the name, and not the rest of a sentence.
func (p place) sure(sep byte) bool {
	return sep == '=' || p.quoted || p.flow || p.lineStart && p.quote == 0
}

// ender returns how a value ends that has no quotes of its own.
func (p place) ender(sep byte, kind string) ender {
	switch {
	case p.quote != 0:
		return ender{how: endQuote, quote: p.quote, escapes: p.escapes}
	case kind == kindAuthorization:
		return ender{how: endAt, stop: headerStop}
	case p.query:
		return ender{how: endAt, stop: queryStop}
	case sep == '=':
		return ender{how: endAt, stop: spaceStop}
	case p.lineStart && !p.flow && !p.quoted:
		return ender{how: endAt, stop: lineStop}
	}
	return ender{how: endAt, stop: flowStop}
}

// schemeLen is the length of an authentication scheme and the blank after it, so
// that a bearer token has the same name in a header as elsewhere.
func schemeLen(b []byte) int {
	for _, s := range []string{"Bearer ", "Basic ", "Digest ", "Negotiate ", "Token ", "AWS4-HMAC-SHA256 "} {
		if hasFold(b, s) {
			return len(s)
		}
	}
	return 0
}

// matchPair: {"name": "DB_PASSWORD", "value": "…"}, as in the environment of a
// container, in JSON or YAML. i is after the separator of name.
func matchPair(b []byte, i int) (match, bool) {
	i = skipAny(b, i, ` "'\`, 16)
	start := i
	for i < len(b) && i-start < 128 && wordChars[b[i]] {
		i++
	}
	kind, ok := kindOf(b[start:i])
	if !ok {
		return match{}, false
	}
	i = skipAny(b, i, " \t\r\n,\"'\\", 256)
	if !hasFold(b[min(i, len(b)):], "value") {
		return match{}, false
	}
	i = skipAny(b, i+len("value"), `"'\ `, 8)
	if at(b, i) != ':' {
		return match{}, false
	}
	return valueOf(b, i+1, kind, place{lineStart: true}, ':')
}

// matchFlag: --token value, also as ["--token","value"].
func matchFlag(b []byte, i int) (match, bool) {
	if at(b, i+1) != '-' {
		return match{}, false
	}
	end := i + 2
	for end < len(b) && end-i < 66 && wordChars[b[end]] {
		end++
	}
	kind, ok := kindOf(b[i+2 : end])
	if !ok || at(b, end) == '=' || at(b, end) == ':' {
		return match{}, false
	}
	start := skipAny(b, end, " \x00\"',\\", 16)
	if start == end || at(b, start) == '-' || at(b, start) == '\n' {
		return match{}, false
	}
	return match{kind: kind, start: start, end: ender{how: endAt, stop: spaceStop}}, true
}

func skipBlank(b []byte, i int) int { return skipAny(b, i, " \t", 256) }

func skipAny(b []byte, i int, chars string, most int) int {
	for k := 0; k < most && i < len(b) && bytes.IndexByte([]byte(chars), b[i]) >= 0; k++ {
		i++
	}
	return i
}
