package annotation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxEvidence = 160
	maxText     = 200
)

// Encode returns the annotation's value, at most MaxBytes long. What does not fit is
// left out, the oldest incidents first, then evidence, then the last findings and
// GPUs that are ok; Cut says how many findings and incidents went. h is not changed.
func Encode(h Health) (string, error) {
	h = bounded(h)
	for {
		b, err := marshal(h)
		if err != nil {
			return "", fmt.Errorf("annotation %s: %w", Key, err)
		}
		if len(b) <= MaxBytes {
			return string(b), nil
		}
		if !shrink(&h) {
			return "", fmt.Errorf("annotation %s: %d bytes with nothing left to leave out", Key, len(b))
		}
	}
}

// bounded is a deep copy with its texts cut and its times in whole seconds.
func bounded(h Health) Health {
	h.Version = Version
	h.Standby = cut(h.Standby, maxText)
	h.Monitors = append([]Monitor(nil), h.Monitors...)
	for i := range h.Monitors {
		m := &h.Monitors[i]
		m.Message, m.Since = cut(m.Message, maxText), seconds(m.Since)
	}
	h.Findings = append([]Finding(nil), h.Findings...)
	for i := range h.Findings {
		f := &h.Findings[i]
		f.Subject, f.Evidence, f.Since = cut(f.Subject, maxText), cut(f.Evidence, maxEvidence), seconds(f.Since)
	}
	h.GPUs = append([]GPU(nil), h.GPUs...)
	for i := range h.GPUs {
		h.GPUs[i].Since = seconds(h.GPUs[i].Since)
	}
	h.Incidents = append([]Incident(nil), h.Incidents...)
	if n := len(h.Incidents) - MaxIncidents; n > 0 {
		h.Incidents = h.Incidents[:MaxIncidents]
	}
	for i := range h.Incidents {
		n := &h.Incidents[i]
		n.Subject, n.Ended = cut(n.Subject, maxText), cut(n.Ended, maxText)
		n.From, n.Last = seconds(n.From), seconds(n.Last)
		if n.To != nil {
			to := seconds(*n.To)
			n.To = &to
		}
	}
	return h
}

// shrink leaves the least valuable thing out, and reports whether there was one.
func shrink(h *Health) bool {
	if n := len(h.Incidents); n > 0 {
		h.Incidents = h.Incidents[:n-1]
		h.Cut++
		return true
	}
	evidence := false
	for i := range h.Findings {
		evidence = evidence || h.Findings[i].Evidence != ""
		h.Findings[i].Evidence = ""
	}
	if evidence {
		return true
	}
	if n := len(h.Findings); n > 0 {
		h.Findings = h.Findings[:n-1]
		h.Cut++
		return true
	}
	for i, g := range h.GPUs {
		if g.Verdict == VerdictOK {
			h.GPUs = append(h.GPUs[:i:i], h.GPUs[i+1:]...)
			return true
		}
	}
	if n := len(h.GPUs); n > 0 {
		h.GPUs = h.GPUs[:n-1]
		return true
	}
	if n := len(h.Monitors); n > 0 {
		h.Monitors = h.Monitors[:n-1]
		return true
	}
	return false
}

// marshal is json.Marshal without the escapes that are for HTML.
func marshal(h Health) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// cut returns at most limit bytes of s, as valid UTF-8 without control characters.
func cut(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= limit {
		return s
	}
	const dots = "…"
	end := limit - len(dots)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + dots
}

func seconds(t time.Time) time.Time {
	return t.UTC().Truncate(time.Second)
}
