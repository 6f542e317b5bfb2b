package fleet

import (
	"cmp"
	"math"
	"slices"
)

const (
	// shareNodes is on how many nodes a reason has to be, shareLevel how improbable a
	// coincidence, to be told.
	shareNodes = 3
	shareLevel = 0.01
)

// Share says that nodes with the same reason have something in common that the others
// have less often than chance would have it.
type Share struct {
	Reason string
	// Trait is what they share ("AMI", "zone", …), Value which one.
	Trait, Value string
	// With of Reasoned nodes that have the reason have the trait, and Having of Total
	// nodes have it.
	With, Reasoned, Having, Total int
	// P is how probable that many or more would be by chance (Fisher's exact test, one
	// side).
	P float64
}

type trait struct {
	name string
	of   func(*Facts) string
}

func traits() []trait {
	label := func(key string) func(*Facts) string {
		return func(f *Facts) string { return f.Labels[key] }
	}
	return []trait{
		{"AMI", (*Facts).AMI},
		{"kernel", func(f *Facts) string { return f.Kernel }},
		{"driver", label(LabelDriver)},
		{"instance type", label(LabelInstanceType)},
		{"zone", label(LabelZone)},
		{"nodepool", (*Facts).Pool},
	}
}

// Shares finds what nodes with the same reason have in common beyond chance, the
// clearest first. A trait that all nodes have says nothing and is not told.
func Shares(rows []*Row) []Share {
	byReason := map[string][]*Facts{}
	for i := range rows {
		for _, reason := range reasons(rows[i]) {
			byReason[reason] = append(byReason[reason], rows[i].Facts)
		}
	}
	var out []Share
	for _, t := range traits() {
		var having map[string]int
		for reason, nodes := range byReason {
			if len(nodes) < shareNodes {
				continue
			}
			if having == nil {
				having = map[string]int{}
				for i := range rows {
					having[t.of(rows[i].Facts)]++
				}
			}
			with := map[string]int{}
			for _, f := range nodes {
				with[t.of(f)]++
			}
			for value, n := range with {
				if value == "" || n < shareNodes {
					continue
				}
				p := Fisher(n, len(nodes), having[value], len(rows))
				if p < shareLevel {
					out = append(out, Share{reason, t.name, value, n, len(nodes), having[value], len(rows), p})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Trait, b.Trait), cmp.Compare(a.Value, b.Value))
	})
	return out
}

// reasons are all that is wrong with the node, each once.
func reasons(r *Row) []string {
	var out []string
	add := func(reason string) {
		if reason != "" && !slices.Contains(out, reason) {
			out = append(out, reason)
		}
	}
	for _, c := range r.Cells {
		if c.State == Sick {
			add(c.Reason)
		}
	}
	for _, w := range r.Warnings {
		add(w.Reason)
	}
	return out
}

// Fisher is the probability that of marked nodes among total, at least hits fall on
// the having ones that share a trait, if chance alone dealt them (the upper tail of the
// hypergeometric distribution). Numbers that cannot be give 1.
func Fisher(hits, marked, having, total int) float64 {
	if hits < 0 || hits > marked || hits > having || marked > total || having > total {
		return 1
	}
	whole := choose(total, marked)
	p := 0.0
	for k := hits; k <= min(marked, having); k++ {
		if marked-k > total-having {
			continue
		}
		p += math.Exp(choose(having, k) + choose(total-having, marked-k) - whole)
	}
	return min(p, 1)
}

// choose is the logarithm of the binomial coefficient.
func choose(n, k int) float64 {
	f := func(n int) float64 { v, _ := math.Lgamma(float64(n) + 1); return v }
	return f(n) - f(k) - f(n-k)
}
