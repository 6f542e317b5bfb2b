package rule

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestPrefilterFindsWhatIsThere(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abc"[rnd.IntN(3)]
		}
		return string(b)
	}
	for range 300 {
		members := make([][]string, 1+rnd.IntN(80))
		for i := range members {
			for range rnd.IntN(4) {
				members[i] = append(members[i], word(1+rnd.IntN(6)))
			}
		}
		p := NewPrefilter(members)
		for range 20 {
			line := word(rnd.IntN(90))
			set := make(Set, p.Words())
			found := p.Find(line, set)
			any := false
			for i, literals := range members {
				want := false
				for _, l := range literals {
					want = want || strings.Contains(line, l)
				}
				any = any || want
				if set.Has(i) != want {
					t.Fatalf("member %d %q in %q: %v, want %v", i, literals, line, set.Has(i), want)
				}
			}
			if found != any {
				t.Fatalf("Find(%q) = %v, want %v", line, found, any)
			}
		}
	}
}

func TestPrefilterOfNothingFindsNothing(t *testing.T) {
	for _, members := range [][][]string{nil, {}, {nil}, {{""}}} {
		p := NewPrefilter(members)
		if p.Find("anything", make(Set, p.Words())) {
			t.Errorf("%q finds something", members)
		}
	}
}

func TestRequiredLiterals(t *testing.T) {
	for pattern, want := range map[string]string{
		`^VFS: file-max limit (\d+) reached`:      "VFS: file-max limit ",
		`(?:abcd|efgh)\d`:                         "abcd efgh",
		`^(?:NMI )?(?:watchdog: )?soft lockup`:    "soft lockup",
		`(?:abcdefgh)?x`:                          "",
		`(?i)abcdefgh`:                            "",
		`a+b+c+`:                                  "",
		`(?:very long text that goes on and on)+`: "very long text that goes",
	} {
		if got := strings.Join(requiredLiterals(pattern), " "); got != want {
			t.Errorf("requiredLiterals(%q) = %q, want %q", pattern, got, want)
		}
	}
}
