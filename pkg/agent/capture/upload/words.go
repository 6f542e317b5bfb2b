package upload

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	// maxAnswer is how much of a server's answer is read to find its reason.
	maxAnswer = 64 << 10
	// maxWords bounds what is quoted of it.
	maxWords = 300
)

// words returns why the server refused, in its own words, on one line: code and
// message of an S3 error document, else the start of the text. Other parts of an S3
// error are left out on purpose: they quote the signature. The secret goes before
// the text is cut, so that no half of it stays.
func words(res *http.Response, secret secret) string {
	b, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	var s3 struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
	}
	if err := xml.Unmarshal(b, &s3); err == nil && s3.Code != "" {
		return clip(secret.scrub(s3.Code + ": " + s3.Message))
	}
	if text := clip(secret.scrub(string(b))); text != "" {
		return text
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		return "the server redirects elsewhere; give the URL of the right region or endpoint"
	}
	return "the server gave no reason"
}

// clip makes s one printable line of bounded length.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxWords {
		return string(r[:maxWords]) + "…"
	}
	return s
}

// Redact returns a URL without user, query and fragment, for logs and messages.
func Redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "(not a URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// secret is what of a URL must not be told.
type secret []string

// minSecret is the length from which a query's value is worth hiding wherever it
// turns up: shorter ones ("PUT", "host") are no secrets, and common in text.
const minSecret = 8

func newSecret(u *url.URL) secret {
	var s secret
	add := func(v string) {
		if len(v) >= minSecret {
			s = append(s, v, url.QueryEscape(v), url.PathEscape(v))
		}
	}
	if password, ok := u.User.Password(); ok {
		add(password)
	}
	if u.RawQuery != "" {
		add(u.RawQuery)
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			if _, raw, ok := strings.Cut(pair, "="); ok && len(raw) >= minSecret {
				s = append(s, raw)
			}
		}
		for _, values := range u.Query() {
			for _, v := range values {
				add(v)
			}
		}
	}
	// The longest first: a value may hold another.
	slices.SortFunc(s, func(a, b string) int { return len(b) - len(a) })
	return s
}

// scrub returns text without the secret, and without the query of any URL in it (a
// redirect may have led to another signed one).
func (s secret) scrub(text string) string {
	for _, v := range s {
		text = strings.ReplaceAll(text, v, "REDACTED")
	}
	return regexp.MustCompile(`(https?://[^\s?"'<>]*)\?[^\s"'<>]*`).ReplaceAllString(text, "$1")
}

// removeFrom returns err's text, scrubbed, without the URL that net/http puts first.
func (s secret) removeFrom(err error) string {
	var ue *url.Error
	for errors.As(err, &ue) && ue.Err != nil {
		err = ue.Err
	}
	return s.scrub(err.Error())
}
