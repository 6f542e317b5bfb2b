package network

import (
	_ "embed"
	"path"
	"slices"
	"strconv"
	"strings"
)

//go:embed chains.tsv
var knownTSV string

// known is a row of the list of rules that belong where they are: by the chain's name
// (a glob), by the begin of the comment, or by the destination.
type known struct{ kind, pattern string }

func knownRules() []known {
	var out []known
	for line := range strings.Lines(knownTSV) {
		if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
			out = append(out, known{f[1], f[2]})
		}
	}
	return out[1:]
}

// firewallRule is a rule as iptables-save(8) writes it.
type firewallRule struct {
	table, chain, target, comment, destination string
	ports                                      []string // of the destination, each "N" or "N:M"
	text                                       string
}

// parseRule parses one line of a table, such as "-A INPUT -p tcp -j DROP". It reports
// whether the line is a rule.
func parseRule(table, line string) (firewallRule, bool) {
	r := firewallRule{table: table, text: line}
	words := splitQuoted(line)
	for i := 0; i+1 < len(words); i++ {
		switch value := words[i+1]; words[i] {
		case "-A":
			r.chain = value
		case "-j", "-g":
			r.target = value
		case "--comment":
			r.comment = value
		case "-d":
			if i == 0 || words[i-1] != "!" {
				r.destination = value
			}
		case "--dport", "--dports", "--destination-port", "--destination-ports":
			if words[i-1] != "!" {
				r.ports = strings.Split(value, ",")
			}
		default:
			continue
		}
		i++
	}
	return r, r.chain != ""
}

// splitQuoted splits at spaces outside of double quotes. A backslash in quotes takes
// the next byte as it is.
func splitQuoted(s string) []string {
	var out []string
	var word strings.Builder
	quoted, open := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted, open = !quoted, true
		case c == '\\' && quoted && i+1 < len(s):
			i++
			word.WriteByte(s[i])
		case c == ' ' && !quoted:
			if open || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteByte(c)
		}
	}
	if open || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out
}

// refuses reports whether the rule turns packets away.
func (r firewallRule) refuses() bool { return r.target == "REJECT" || r.target == "DROP" }

// isKnown reports whether the rule belongs where it is.
func (r firewallRule) isKnown(list []known, allowed []string) bool {
	if slices.Contains(allowed, r.table+"/"+r.chain) {
		return true
	}
	address, _, _ := strings.Cut(r.destination, "/")
	return slices.ContainsFunc(list, func(k known) bool {
		switch k.kind {
		case "chain":
			ok, _ := path.Match(k.pattern, r.chain)
			return ok
		case "comment":
			return strings.HasPrefix(r.comment, k.pattern)
		}
		return k.kind == "destination" && address == k.pattern
	})
}

// redirects reports whether the rule sends packets for a port elsewhere.
func (r firewallRule) redirects(port int) bool {
	if r.target != "DNAT" {
		return false
	}
	return slices.ContainsFunc(r.ports, func(p string) bool {
		from, to, isRange := strings.Cut(p, ":")
		if !isRange {
			to = from
		}
		low, err1 := strconv.Atoi(from)
		high, err2 := strconv.Atoi(to)
		return err1 == nil && err2 == nil && low <= port && port <= high
	})
}
