package kernel

import (
	"regexp"
	"strings"
)

var (
	panicLine = regexp.MustCompile(`Kernel panic - not syncing: *([^\r\n]*)`)
	// By hand: "sysrq: SysRq : Trigger a crash", later "sysrq: Trigger a crash".
	crashByHand = regexp.MustCompile(`(?i)sysrq: (?:SysRq : )?Trigger a crash`)
)

// panicked is a kernel panic found in text that outlived it.
type panicked struct {
	reason string
	// deliberate says that somebody asked for it.
	deliberate bool
}

// parsePanic finds the panic in the last words of a kernel. A crash by hand need not
// have come as far as the panic's own line.
func parsePanic(text string) (panicked, bool) {
	p := panicked{deliberate: crashByHand.MatchString(text)}
	if m := panicLine.FindStringSubmatch(text); m != nil {
		p.reason = strings.TrimSpace(m[1])
		return p, true
	}
	if p.deliberate {
		p.reason = "sysrq triggered crash"
	}
	return p, p.deliberate
}
