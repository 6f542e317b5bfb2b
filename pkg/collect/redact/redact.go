// Package redact takes secrets out of text while it streams by, in constant
// memory. It knows credentials of kubeconfigs, Authorization headers, AWS keys,
// session tokens and presigned URLs, JSON web tokens, private keys, passwords in
// URLs, and values whose name says that they are a token, a secret or a password,
// be it in the environment, JSON, YAML, a query string or a command line.
//
// It is a scanner and not a set of regular expressions: one pass over the bytes
// looks only at the few that a secret's name or form must have, and ordinary log
// text goes by at memory speed.
package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// Redactor replaces secrets with tokens such as "REDACTED-jwt-1a2b3c4d". Within
// one Redactor the same secret has the same token; between two, tokens cannot be
// compared, since each has a random key. It is safe for concurrent use.
type Redactor struct {
	key [32]byte
}

// New returns a Redactor with a key of its own.
func New() *Redactor {
	r := &Redactor{}
	rand.Read(r.key[:]) // never fails, see crypto/rand
	return r
}

// String redacts s and counts what was redacted by kind (nil when nothing was).
func (r *Redactor) String(s string) (string, map[string]int) {
	var out bytes.Buffer
	w := r.Writer(&out)
	// A bytes.Buffer does not fail.
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return out.String(), w.Counts()
}

// Kinds of secrets, as they stand in tokens and in the counts.
const (
	kindAuthorization = "authorization"
	kindAWSKeyID      = "aws-access-key"
	kindAWSSecret     = "aws-secret-key"
	kindAWSSession    = "aws-session-token"
	kindAPIKey        = "api-key"
	kindJWT           = "jwt"
	kindKubeconfig    = "kubeconfig"
	kindPassword      = "password"
	kindPresigned     = "presigned-url"
	kindPrivateKey    = "private-key"
	kindRegistry      = "registry-auth"
	kindSecret        = "secret"
	kindToken         = "token"
)

const prefix = "REDACTED-"

func (r *Redactor) hash() hash.Hash { return hmac.New(sha256.New, r.key[:]) }

func token(kind string, h hash.Hash) string {
	return prefix + kind + "-" + hex.EncodeToString(h.Sum(nil)[:4])
}
