package ledger

import (
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// Kind says what ends a fault.
type Kind string

// What ends a fault, as the catalogue's column "clears" says it.
const (
	// ClearEvent ends by itself: nothing was wrong for longer than the moment. It is
	// forgotten after an hour in which it did not happen again.
	ClearEvent Kind = "event"
	// ClearPoll ends after some clean samples in a row, of the check that covers it.
	ClearPoll Kind = "poll"
	// ClearReboot ends when the node boots.
	ClearReboot Kind = "reboot"
	// ClearNever ends by a person's all-clear only.
	ClearNever Kind = "never"
	// ClearDriver ends when the driver itself says so (health.Finding.Clears), and
	// when the node boots, since the driver then starts anew and says again what is
	// wrong.
	ClearDriver Kind = "driver"
)

// Rule is what ends the faults of one reason.
type Rule struct {
	Kind Kind
	// Driver says that the driver's own all-clear ends it too.
	Driver bool
}

// ParseRule reads the catalogue's column "clears": a kind, with details for people
// after a colon or a semicolon. A Fatal must be able to end, and must not end by
// itself: the caller says whether it is one.
func ParseRule(clears string, severity health.Severity) Rule {
	driver := strings.Contains(clears, "0x0")
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(clears)), ":")
	word, _, _ = strings.Cut(word, ";")
	r := Rule{Kind: Kind(strings.TrimSpace(word)), Driver: driver}
	switch r.Kind {
	case ClearPoll, ClearReboot, ClearNever:
	case ClearDriver:
		r.Driver = true
	default:
		r.Kind = ClearEvent
		if driver {
			r.Kind = ClearDriver
		}
	}
	if r.Kind == ClearEvent && severity == health.Fatal {
		// A reason that is an event by nature was made Fatal by a rule file or by the
		// config: the condition of a node does not heal by waiting.
		r.Kind = ClearReboot
	}
	return r
}

// endsAtReboot reports whether a boot by itself is enough.
func (r Rule) endsAtReboot() bool {
	return r.Kind == ClearReboot || r.Kind == ClearDriver
}
