package ledger

import "github.com/ekslogs/ekslogs/pkg/health"

// Policy is what the operator decided about reasons. The zero value changes nothing.
type Policy struct {
	// Reasons are decisions by reason code, as it is written on a Node
	// ("NvidiaXID79Error") or in the catalogue ("NvidiaXID{N}Error"). The exact code
	// goes first.
	Reasons map[string]ReasonPolicy
	// Shadow puts every Fatal into shadow mode.
	Shadow bool
	// CleanSamples is how many clean samples in a row end a fault; 0 means 3.
	CleanSamples int
	// TrustUserspace lets records that user space wrote into the kernel's log be
	// Fatal. It is for tests: any privileged pod can write such records.
	TrustUserspace bool
}

// ReasonPolicy is what the operator decided about one reason.
type ReasonPolicy struct {
	// Disabled ignores the reason altogether.
	Disabled bool
	// Severity replaces the severity of the finding; empty keeps it.
	Severity health.Severity
	// Shadow keeps a Fatal from turning its condition: an Event "WouldBe<Reason>" and
	// a metric show what would have been.
	Shadow bool
	// Clears replaces the catalogue's rule of clearing; empty keeps it.
	Clears Kind
}

const defaultCleanSamples = 3

func (p Policy) cleanSamples() int {
	if p.CleanSamples > 0 {
		return p.CleanSamples
	}
	return defaultCleanSamples
}

func (p Policy) of(code string, row health.Reason, known bool) ReasonPolicy {
	if r, ok := p.Reasons[code]; ok {
		return r
	}
	if known {
		return p.Reasons[row.Code]
	}
	return ReasonPolicy{}
}

// judged is what a finding is worth under the policy.
type judged struct {
	disabled bool
	severity health.Severity
	shadow   bool
	rule     Rule
}

func (p Policy) judge(c *health.Catalog, code string, severity health.Severity, cond health.ConditionType, origin health.Origin) judged {
	row, known := c.Lookup(code)
	rp := p.of(code, row, known)
	j := judged{disabled: rp.Disabled, severity: severity}
	if rp.Severity != "" {
		j.severity = rp.Severity
	}
	if j.severity.Rank() == 0 {
		j.severity = health.Warning
	}
	if j.severity == health.Fatal {
		switch {
		case origin == health.OriginUserspace && !p.TrustUserspace, cond == "":
			j.severity = health.Warning
		case p.Shadow || rp.Shadow:
			j.shadow = true
		}
	}
	clears := row.Clears
	if rp.Clears != "" {
		clears = string(rp.Clears)
	}
	j.rule = ParseRule(clears, j.severity)
	return j
}
