package collect

import (
	"crypto/rand"
	"path"
	"strings"
)

// randomID is a part of a file name that nobody can foresee.
func randomID() string { return strings.ToLower(rand.Text()[:16]) }

// safePath makes a path of the host one that every reader of the archive takes:
// relative, without "..", and without bytes that tar or a terminal mistakes.
func safePath(p string) string {
	clean := strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(p, `\`, "_")), "/")
	clean = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '�' {
			return '_'
		}
		return r
	}, clean)
	if len(clean) > 1 && clean[1] == ':' {
		clean = clean[:1] + "_" + clean[2:]
	}
	return clean
}
