//go:build nightly

package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health/detect"
	"github.com/ekslogs/ekslogs/pkg/health/rule"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/logtext"
)

// TestEveryRuleIsNeeded drops each rule in turn: without it, some text of the kinds or
// of the cases must be read otherwise. A rule that no test needs is not tested.
func TestEveryRuleIsNeeded(t *testing.T) {
	rules, err := rule.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	texts := mutationTexts(t)
	with := make([]string, len(texts))
	for i, text := range texts {
		with[i] = text.found(t, rules)
	}
	for i, r := range rules {
		t.Run(r.ID, func(t *testing.T) {
			rest := slices.Delete(slices.Clone(rules), i, i+1)
			for j, text := range texts {
				if strings.Contains(with[j], r.Reason) && text.found(t, rest) != with[j] {
					return
				}
			}
			t.Errorf("no text needs rule %s (%s)", r.ID, r.Reason)
		})
	}
}

type mutationText struct {
	options logtext.Options
	text    string
}

func mutationTexts(t *testing.T) []mutationText {
	var texts []mutationText
	add := func(flags []string, text string) {
		o := logtext.Options{}
		for i := 0; i+1 < len(flags); i += 2 {
			switch flags[i] {
			case "--source":
				o.Source = host.Source(flags[i+1])
			case "--unit":
				o.Unit = flags[i+1]
			case "--path":
				o.Path = flags[i+1]
			}
		}
		texts = append(texts, mutationText{o, text})
	}
	for _, c := range readCases(t) {
		add(c.flags(), strings.Join(c.Input, "\n"))
	}
	data, err := os.ReadFile(detectData + "kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split("\n"+string(data), "\n== ")[1:] {
		head, text, _ := strings.Cut(block, "\n")
		add(strings.Fields(strings.Split(head, "|")[1]), repeated(t, text))
	}
	return texts
}

// found is what is found in a text with the given rules, in words.
func (m mutationText) found(t *testing.T, rules []rule.Rule) string {
	p, err := detect.New(detect.Options{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	print := &findingPrinter{out: &out, json: true, told: map[incidentKey]bool{}}
	if err := replay(t.Context(), strings.NewReader(m.text), m.options, p, print); err != nil {
		t.Fatal(err)
	}
	var words []string
	for l := range strings.Lines(out.String()) {
		var line replayLine
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatal(err)
		}
		words = append(words, fmt.Sprint(line.Reason, line.Subject, line.Severity, line.Fields))
	}
	return strings.Join(words, "\n")
}
