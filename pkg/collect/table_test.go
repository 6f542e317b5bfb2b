package collect

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// expandBraces spells {a,b} out, as a shell does.
func expandBraces(s string) []string {
	open := strings.IndexByte(s, '{')
	if open < 0 {
		return []string{s}
	}
	end := open + strings.IndexByte(s[open:], '}')
	var out []string
	for alternative := range strings.SplitSeq(s[open+1:end], ",") {
		if alternative == "..." {
			continue
		}
		out = append(out, expandBraces(s[:open]+alternative+s[end+1:])...)
	}
	return out
}

// expectedPaths are the paths of the list that support tooling goes by, with
// samples for its placeholders.
func expectedPaths(t *testing.T) []string {
	text, err := os.ReadFile("testdata/bundle-paths.txt")
	if err != nil {
		t.Fatal(err)
	}
	samples := strings.NewReplacer(
		"<family>", "ip", "<table>", "filter", "*", "1",
		"<name under /var/log>", "messages",
		"<namespace>_<pod>_<uid>/<container>/N.log", "kube-system_aws-node-abcde_0a1b/aws-node/0.log",
	)
	comment := regexp.MustCompile(`\s+\(.*$`)
	var out []string
	for line := range strings.Lines(string(text)) {
		line = comment.ReplaceAllString(strings.TrimSpace(line), "")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		for _, p := range expandBraces(line) {
			out = append(out, samples.Replace(p))
		}
	}
	if len(out) < 100 {
		t.Fatalf("only %d paths in the list: %q", len(out), out)
	}
	return out
}

func TestTableCoversEveryPathThatToolingKnows(t *testing.T) {
	have := []string{bundle.LegacyErrorsName}
	for _, n := range fullTable() {
		have = append(have, expandBraces(n.path)...)
	}
	for _, want := range expectedPaths(t) {
		covered := slices.ContainsFunc(have, func(p string) bool {
			if dir, ok := strings.CutSuffix(want, "/"); ok {
				return strings.HasPrefix(p, dir+"/")
			}
			ok, err := path.Match(p, want)
			if err != nil {
				t.Fatalf("%q: %v", p, err)
			}
			return ok
		})
		if !covered {
			t.Errorf("no entry gives %s", want)
		}
	}
}

func TestTableEntriesAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, n := range fullTable() {
		if seen[n.path] {
			t.Errorf("%s is there twice", n.path)
		}
		seen[n.path] = true
		if n.path == "" || safePath(n.path) != n.path {
			t.Errorf("%q is no path for an archive", n.path)
		}
		if n.category == v1alpha1.LogCategoryAll || !slices.Contains(v1alpha1.LogCategories(), n.category) {
			t.Errorf("%s has category %q", n.path, n.category)
		}
		if (n.src == nil) == (n.expand == nil) {
			t.Errorf("%s must have either a source or an expansion", n.path)
		}
		if n.expand != nil && n.kind == "" {
			t.Errorf("%s expands and says not to what", n.path)
		}
		if n.timeout < 0 || n.bytes < 0 || n.lane >= lanes {
			t.Errorf("%s has impossible bounds", n.path)
		}
	}
}

func TestCategoriesAreSpeltOutAndChecked(t *testing.T) {
	all := []v1alpha1.LogCategory{"Base", "Device", "Networking", "Runtime", "System"}
	for _, tc := range []struct {
		in, want []v1alpha1.LogCategory
	}{
		{nil, all},
		{[]v1alpha1.LogCategory{"All"}, all},
		{[]v1alpha1.LogCategory{"System", "base", "System"}, []v1alpha1.LogCategory{"Base", "System"}},
		{[]v1alpha1.LogCategory{"Base", "All"}, all},
	} {
		got, err := expandCategories(tc.in)
		if err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("expandCategories(%q) = %q, %v; want %q", tc.in, got, err, tc.want)
		}
	}
	_, err := expandCategories([]v1alpha1.LogCategory{"Disk"})
	if err == nil || !strings.Contains(err.Error(), "Base, Device, Networking, Runtime, System, All") {
		t.Errorf("unknown category: %v; want the valid ones named", err)
	}
}
