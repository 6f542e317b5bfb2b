package rule

import (
	"regexp/syntax"
	"slices"
	"strings"
)

// Bounds of the literals that a pattern may be found by. Shorter ones occur in too
// many lines; longer ones only make the table larger.
const (
	minLiteral  = 4
	maxLiteral  = 24
	maxLiterals = 16
)

// requiredLiterals returns strings of which at least one occurs in whatever the
// pattern matches: nil when there is no such set within the bounds.
func requiredLiterals(pattern string) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	literals := literalsOf(re.Simplify())
	if !usable(literals) {
		return nil
	}
	for i, l := range literals {
		literals[i] = l[:min(len(l), maxLiteral)]
	}
	slices.Sort(literals)
	return slices.Compact(literals)
}

func usable(literals []string) bool {
	return len(literals) > 0 && len(literals) <= maxLiterals && shortest(literals) >= minLiteral
}

// literalsOf returns a required set for re of whatever quality, nil for none.
func literalsOf(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 && strings.ToLower(string(re.Rune)) != strings.ToUpper(string(re.Rune)) {
			return nil
		}
		return []string{string(re.Rune)}
	case syntax.OpCapture, syntax.OpPlus:
		return literalsOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literalsOf(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if l := literalsOf(sub); better(l, best) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			l := literalsOf(sub)
			if l == nil {
				return nil
			}
			all = append(all, l...)
		}
		return all
	}
	return nil
}

// better says whether set a tells more than set b: a usable one before one that is
// not, then the longest shortest literal, which is the rarest in ordinary lines.
func better(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) > 0
	}
	if ua, ub := usable(a), usable(b); ua != ub {
		return ua
	}
	return min(shortest(a), maxLiteral) > min(shortest(b), maxLiteral)
}

func shortest(literals []string) int {
	n := len(literals[0])
	for _, l := range literals {
		n = min(n, len(l))
	}
	return n
}
