package detect

import (
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// maxEvidence bounds the record that a finding shows, in bytes.
const maxEvidence = 1024

// complete fills in what is the record's own, and takes from findings that rest on
// the words of user space what these are not worth.
func (l *lane) complete(f health.Finding, r *host.Record) health.Finding {
	if r != nil {
		if f.Position == "" && f.At.IsZero() {
			f.At, f.Boot, f.Position = r.At, r.Boot, r.Position
		}
		if f.Evidence == "" {
			f.Evidence = r.Message
		}
		if f.Origin == "" {
			f.Origin = originOf(r)
		}
	}
	if l.user {
		f.Origin = health.OriginUserspace
		f.Clears = false
		if f.Severity == health.Fatal {
			f.Severity = health.Warning
		}
	}
	f.Evidence = printable(f.Evidence)
	return f
}

func originOf(r *host.Record) health.Origin {
	switch {
	case r.Kernel:
		return health.OriginKernel
	case r.Source == host.SourceKmsg:
		return health.OriginUserspace
	}
	return health.OriginService
}

// printable makes a record fit to be shown and to be sent: valid UTF-8, no control
// characters but newline and tab, bounded.
func printable(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxEvidence)], "\uFFFD")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
