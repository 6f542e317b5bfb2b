package suggest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNear(t *testing.T) {
	nodes := []string{"ip-10-0-1-42.ec2.internal", "ip-10-0-1-43.ec2.internal", "ip-10-9-9-9.ec2.internal", "gpu-a"}
	for _, tc := range []struct {
		word string
		want []string
	}{
		{"ip-10-0-1-42.ec2.interna", []string{"ip-10-0-1-42.ec2.internal", "ip-10-0-1-43.ec2.internal", "ip-10-9-9-9.ec2.internal"}},
		{"IP-10-0-1-42", []string{"ip-10-0-1-42.ec2.internal"}},
		{"gpu-b", []string{"gpu-a"}},
		{"something-else", []string{}},
		{"", nil},
		{strings.Repeat("a", 1<<20), nil},
	} {
		if d := cmp.Diff(tc.want, Near(tc.word, nodes, 3)); d != "" {
			t.Errorf("Near(%.40q): %s", tc.word, d)
		}
	}
}

func TestSentence(t *testing.T) {
	for _, tc := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"a"}, " Did you mean a?"},
		{[]string{"a", "b", "c"}, " Did you mean a, b or c?"},
	} {
		if got := Sentence(tc.names); got != tc.want {
			t.Errorf("Sentence(%q) = %q, want %q", tc.names, got, tc.want)
		}
	}
}
