// Package suggest finds what a person probably meant.
package suggest

import (
	"slices"
	"strings"
)

// Near returns at most limit of the candidates that are like word, the likest
// first: those within an edit distance of a third of its length (at least one),
// then those that contain it, without regard to case. Equal ones are sorted by name.
func Near(word string, candidates []string, limit int) []string {
	type scored struct {
		name string
		cost int
	}
	w := strings.ToLower(word)
	if w == "" || len(w) > 253 {
		return nil
	}
	bound := max(1, len(w)/3)
	var found []scored
	for _, c := range candidates {
		lower := strings.ToLower(c)
		d := distance(w, lower, bound)
		switch {
		case d <= bound:
			found = append(found, scored{c, d})
		case strings.Contains(lower, w):
			found = append(found, scored{c, bound + 1 + len(lower)})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		if a.cost != b.cost {
			return a.cost - b.cost
		}
		return strings.Compare(a.name, b.name)
	})
	if len(found) > limit {
		found = found[:limit]
	}
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = f.name
	}
	return names
}

// Sentence is " Did you mean a, b or c?", or empty without names.
func Sentence(names []string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return " Did you mean " + names[0] + "?"
	default:
		return " Did you mean " + strings.Join(names[:n-1], ", ") + " or " + names[n-1] + "?"
	}
}

// distance is the Levenshtein distance of a and b in bytes, or a number above bound
// once it is sure to be greater.
func distance(a, b string, bound int) int {
	if d := len(a) - len(b); d > bound || -d > bound {
		return bound + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, least := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least > bound {
			return bound + 1
		}
	}
	return row[len(b)]
}
