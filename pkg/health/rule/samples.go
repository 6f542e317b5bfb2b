package rule

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// prove checks a rule by its samples.
func (e *Engine) prove(c *compiled) []error {
	var errs []error
	fail := func(kind string, i int, format string, args ...any) {
		errs = append(errs, fmt.Errorf("rule %s: samples.%s[%d]: %s", c.ID, kind, i, fmt.Sprintf(format, args...)))
	}
	if len(c.Samples.Match) == 0 {
		errs = append(errs, fmt.Errorf("rule %s: samples.match is empty: give a line that it must match", c.ID))
	}
	if len(c.Samples.NoMatch) == 0 {
		errs = append(errs, fmt.Errorf("rule %s: samples.noMatch is empty: give a line that looks alike and must not match", c.ID))
	}
	for i, s := range c.Samples.Match {
		fields, ok := c.match(s.Text)
		if !ok {
			fail("match", i, "it does not match %q", s.Text)
			continue
		}
		if got, want := normal(fields), normal(s.Fields); !reflect.DeepEqual(got, want) {
			fail("match", i, "fields are %s, want %s", asJSON(fields), asJSON(s.Fields))
		}
		if subject := c.subject.expand(fields); s.Subject != "" && subject != s.Subject {
			fail("match", i, "subject is %q, want %q", subject, s.Subject)
		}
		winner, _ := e.winner(c.sampleRecord(s.Text))
		switch {
		case winner == nil:
			fail("match", i, "no literal of the rule (%q) is in it", c.literals)
		case winner != c:
			fail("match", i, "rule %s takes the line: see rank", winner.ID)
		}
	}
	for i, text := range c.Samples.NoMatch {
		if _, ok := c.match(text); ok {
			fail("noMatch", i, "it matches %q", text)
		}
	}
	return errs
}

// sampleRecord is a record of the log that the rule is for, with the given text.
func (c *compiled) sampleRecord(text string) *host.Record {
	r := &host.Record{Source: c.Source, Message: text, Kernel: c.Source == host.SourceKmsg}
	if c.Source == host.SourceJournal {
		r.Unit = AnyUnit
	}
	return r
}

// normal brings fields to what JSON makes of them, in which numbers have one type.
func normal(fields map[string]any) map[string]any {
	var out map[string]any
	if err := json.Unmarshal([]byte(asJSON(fields)), &out); err != nil || len(out) == 0 {
		return nil
	}
	return out
}

func asJSON(fields map[string]any) string {
	b, err := json.Marshal(fields)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
