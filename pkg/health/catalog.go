package health

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed reasons.tsv
var reasonsTSV string

// Reason is one row of the catalogue of reasons. Codes and severities are public
// API: Karpenter's and EKS's repair rules key on them.
type Reason struct {
	// Condition is the node condition that the reason belongs to; empty for the
	// agent's own reasons.
	Condition ConditionType
	// Code is the reason code. "{N}" in it stands for a number and "{Unit}" for the
	// name of a systemd unit in title case.
	Code string
	// Severity is what a finding with this reason does unless it is overridden.
	Severity Severity
	// Origin is "eks" for codes of the EKS node monitoring agent, "npd" for those of
	// node-problem-detector, "new" for ours.
	Origin string
	// Source, Detect and Clears say in words what finds it, by which rule, and what
	// ends it ("event", "poll", "reboot", "never", with details after a colon).
	Source, Detect, Clears string

	pattern *regexp.Regexp
}

// Catalog is the catalogue of reasons. It is immutable and safe for concurrent use.
type Catalog struct {
	reasons []Reason
	byCode  map[string]int
}

// NewCatalog parses the embedded catalogue. A malformed row is a defect of the
// build and panics; a test loads it.
func NewCatalog() *Catalog {
	c := &Catalog{byCode: map[string]int{}}
	lines := strings.Split(strings.TrimSpace(reasonsTSV), "\n")
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		if len(f) != 7 {
			panic(fmt.Sprintf("health: reasons.tsv: %d fields in %q", len(f), line))
		}
		r := Reason{Code: f[1], Severity: Severity(f[2]), Origin: f[3], Source: f[4], Detect: f[5], Clears: f[6]}
		if f[0] != "-" {
			r.Condition = ConditionType(f[0])
		}
		if strings.Contains(r.Code, "{") {
			p := regexp.QuoteMeta(r.Code)
			p = strings.Replace(p, `\{N\}`, `[0-9]+`, 1)
			p = strings.Replace(p, `\{Unit\}`, `[A-Z][A-Za-z0-9_.@-]*`, 1)
			r.pattern = regexp.MustCompile("^" + p + "$")
		}
		c.byCode[r.Code] = len(c.reasons)
		c.reasons = append(c.reasons, r)
	}
	return c
}

// Reasons returns all rows in the catalogue's order. The slice is the caller's.
func (c *Catalog) Reasons() []Reason {
	return append([]Reason(nil), c.reasons...)
}

// Lookup finds the row for a reason code as it is written on a Node, such as
// "NvidiaXID79Error" for the row "NvidiaXID{N}Error".
func (c *Catalog) Lookup(code string) (Reason, bool) {
	if i, ok := c.byCode[code]; ok {
		return c.reasons[i], true
	}
	for _, r := range c.reasons {
		if r.pattern != nil && r.pattern.MatchString(code) {
			return r, true
		}
	}
	return Reason{}, false
}
