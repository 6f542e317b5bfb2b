package rule

// Prefilter finds, in one pass over a line, which members of a set may have something
// to say about it: those of which at least one literal occurs in the line. It is an
// Aho-Corasick automaton, compiled to a table: the cost of a line is a load per byte,
// whatever the number of literals. It is immutable and safe for concurrent use.
type Prefilter struct {
	// class maps a byte to its column; bytes of no literal share column 0.
	class [256]uint32
	// next is the table, a row for each state. A state is named by the offset of its
	// row. The rows of states at which a literal ends come last, from firstEnd on, so
	// that the loop tells them by one comparison.
	next     []uint32
	width    uint32
	firstEnd uint32
	// ends holds, for the states from firstEnd on, the members whose literals end.
	ends [][]int
	// longest is the length of the longest literal, size the number of members.
	longest, size int
}

// Set is a set of members, as Prefilter.Find fills it. Its length is Words.
type Set []uint64

// Has says whether member i is in the set.
func (s Set) Has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

// NewPrefilter compiles the literals of each member. Empty literals and members
// without literals are never found.
func NewPrefilter(members [][]string) *Prefilter {
	p := &Prefilter{size: len(members), width: 1}
	for _, literals := range members {
		for _, l := range literals {
			p.longest = max(p.longest, len(l))
			for i := range len(l) {
				if p.class[l[i]] == 0 {
					p.class[l[i]] = p.width
					p.width++
				}
			}
		}
	}
	p.compile(buildTrie(members, &p.class, int(p.width)))
	return p
}

// Words is the length of a Set for this prefilter.
func (p *Prefilter) Words() int { return (p.size + 63) / 64 }

// Find puts the members of which a literal occurs in line into set, which the caller
// has cleared, and says whether there are any.
func (p *Prefilter) Find(line string, set Set) bool {
	if p.size == 0 {
		return false
	}
	if len(line) < 4*p.longest {
		return p.find(line, set)
	}
	return p.findHalves(line, set)
}

func (p *Prefilter) find(line string, set Set) bool {
	found := false
	next, class := p.next, &p.class
	state := uint32(0)
	for i := range len(line) {
		state = next[state+class[line[i]]]
		if state >= p.firstEnd {
			found = true
			p.add(state, set)
		}
	}
	return found
}

// findHalves reads both halves of a line at once: each step waits for the load of the
// step before it, and the two do not wait for each other. The first half goes on past
// the middle for what begins before it and ends after it.
func (p *Prefilter) findHalves(line string, set Set) bool {
	found := false
	next, class := p.next, &p.class
	half := (len(line) + p.longest) / 2
	first := line[:half]
	second := line[len(line)-half:]
	var a, b uint32
	for i := range min(len(first), len(second)) {
		a = next[a+class[first[i]]]
		b = next[b+class[second[i]]]
		if a >= p.firstEnd || b >= p.firstEnd {
			found = true
			p.add(a, set)
			p.add(b, set)
		}
	}
	return found
}

// add puts the members whose literals end at state into set.
func (p *Prefilter) add(state uint32, set Set) {
	if state < p.firstEnd {
		return
	}
	for _, m := range p.ends[(state-p.firstEnd)/p.width] {
		set[m/64] |= 1 << (m % 64)
	}
}

// trieNode is a state while the automaton is built.
type trieNode struct {
	next    []int // by class, -1 for none
	fail    int
	members []int
}

// buildTrie makes the trie of all literals and its failure links. Nodes are in
// breadth-first order, so that the states an ordinary line visits lie together.
func buildTrie(members [][]string, class *[256]uint32, width int) []trieNode {
	newNode := func() trieNode {
		n := trieNode{next: make([]int, width)}
		for i := range n.next {
			n.next[i] = -1
		}
		return n
	}
	nodes := []trieNode{newNode()}
	for m, literals := range members {
		for _, l := range literals {
			if l == "" {
				continue
			}
			at := 0
			for i := range len(l) {
				c := class[l[i]]
				if nodes[at].next[c] < 0 {
					nodes = append(nodes, newNode())
					nodes[at].next[c] = len(nodes) - 1
				}
				at = nodes[at].next[c]
			}
			nodes[at].members = append(nodes[at].members, m)
		}
	}
	return nodes
}

// compile completes the trie to a table. Breadth-first, so that the failure state of
// a node is complete before the node is.
func (p *Prefilter) compile(nodes []trieNode) {
	order := []int{0}
	for i := 0; i < len(order); i++ {
		n := order[i]
		for c, to := range nodes[n].next {
			fail := nodes[nodes[n].fail].next[c]
			switch {
			case n == 0 && to < 0:
				nodes[n].next[c] = 0
			case to < 0:
				nodes[n].next[c] = fail
			default:
				if n != 0 {
					nodes[to].fail = fail
					nodes[to].members = append(nodes[to].members, nodes[fail].members...)
				}
				order = append(order, to)
			}
		}
	}
	rows := make([]int, 0, len(order))
	for _, ending := range []bool{false, true} {
		if ending {
			p.firstEnd = uint32(len(rows)) * p.width
		}
		for _, n := range order {
			if (len(nodes[n].members) > 0) == ending {
				rows = append(rows, n)
			}
		}
	}
	row := make([]uint32, len(nodes))
	for i, n := range rows {
		row[n] = uint32(i) * p.width
	}
	p.next = make([]uint32, len(rows)*int(p.width))
	for i, n := range rows {
		for c, to := range nodes[n].next {
			p.next[i*int(p.width)+c] = row[to]
		}
		if len(nodes[n].members) > 0 {
			p.ends = append(p.ends, nodes[n].members)
		}
	}
}
