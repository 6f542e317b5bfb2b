package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func runRules(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}})
	root.SetArgs(append([]string{"rules"}, args...))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestRulesListHasARowForEachRule(t *testing.T) {
	asJSON, err := runRules(t, "list", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var rules []map[string]any
	if err := json.Unmarshal([]byte(asJSON), &rules); err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"table", "wide"} {
		table, err := runRules(t, "list", "-o", format)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(table, "\n") - 1; got != len(rules) {
			t.Errorf("-o %s has %d rows, want %d", format, got, len(rules))
		}
	}
	if _, err := runRules(t, "list", "-o", "xml"); err == nil {
		t.Error("-o xml: no error")
	}
}

func TestRulesTestNamesRuleAndSample(t *testing.T) {
	const good = `apiVersion: ekslogs.io/v1alpha1
kind: RuleList
rules:
- id: my-driver
  source: kmsg
  reason: MachineCheck
  patterns: ['^mydriver: fault (?P<code>\d+)']
  ints: [code]
  message: My driver reported a fault
  samples:
    match: [{text: 'mydriver: fault 7', fields: {code: 7}}]
    noMatch: ['mydriver: ready']
`
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	if out, err := runRules(t, "test", write(good)); err != nil || !strings.Contains(out, "all as they should be") {
		t.Errorf("%q, %v", out, err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"a sample that does not match": {"fault 7", "faults 7", "rule my-driver: samples.match[0]"},
		"a field that differs":         {"{code: 7}", "{code: 8}", "rule my-driver: samples.match[0]"},
		"a sample that matches":        {"mydriver: ready", "mydriver: fault 8", "rule my-driver: samples.noMatch[0]"},
		"no samples":                   {"    match: [{text: 'mydriver: fault 7', fields: {code: 7}}]\n", "", "rule my-driver: samples.match is empty"},
		"an unknown key":               {"message:", "mesage:", "mesage"},
		"an unknown reason":            {"MachineCheck", "MachineCheque", "catalogue"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runRules(t, "test", write(strings.Replace(good, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}
