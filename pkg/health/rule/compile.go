package rule

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// compiled is a rule that is ready to match. It holds no state.
type compiled struct {
	Rule
	patterns  []*regexp.Regexp
	exclude   *regexp.Regexp
	literals  []string
	condition health.ConditionType
	severity  health.Severity
	subject   template
	message   template
}

// compile checks a rule by itself: everything but its samples.
func compile(r Rule, catalog *health.Catalog) (*compiled, error) {
	c := &compiled{Rule: r}
	if r.ID == "" {
		return nil, errors.New("it has no id")
	}
	reason, ok := catalog.Lookup(r.Reason)
	if !ok {
		return nil, fmt.Errorf("reason %q is not in the catalogue; see \"node-agent reasons\"", r.Reason)
	}
	c.condition, c.severity = reason.Condition, reason.Severity
	if r.Severity != "" {
		c.severity = r.Severity
	}
	if c.severity.Rank() == 0 {
		return nil, fmt.Errorf("severity %q: use Info, Warning or Fatal", r.Severity)
	}
	if err := c.checkSource(); err != nil {
		return nil, err
	}
	if err := c.compilePatterns(); err != nil {
		return nil, err
	}
	return c, c.compileTemplates()
}

func (c *compiled) checkSource() error {
	globs := c.Units
	switch c.Source {
	case host.SourceKmsg:
		if len(c.Units)+len(c.Paths) > 0 {
			return errors.New("a kmsg rule has neither units nor paths")
		}
	case host.SourceJournal:
		if len(c.Units) == 0 || len(c.Paths) > 0 {
			return errors.New("a journal rule has units and no paths")
		}
	case host.SourceFile:
		globs = c.Paths
		if len(c.Paths) == 0 || len(c.Units) > 0 {
			return errors.New("a file rule has paths and no units")
		}
	default:
		return fmt.Errorf("source %q: use kmsg, journal or file", c.Source)
	}
	for _, g := range globs {
		if _, err := path.Match(g, ""); err != nil {
			return fmt.Errorf("shell pattern %q: %w", g, err)
		}
	}
	if w := c.Window; w != nil && (w.Count < 1 || w.Within.Duration <= 0 || w.Span.Duration < 0 || w.Span.Duration >= w.Within.Duration) {
		return errors.New("window: count must be at least 1, and span shorter than within")
	}
	return nil
}

func (c *compiled) compilePatterns() error {
	if len(c.Patterns) == 0 {
		return errors.New("it has no patterns")
	}
	c.literals = slices.Clone(c.Literals)
	for _, p := range c.Patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
		c.patterns = append(c.patterns, re)
		if len(c.Literals) > 0 {
			continue
		}
		literals := requiredLiterals(p)
		if literals == nil {
			return fmt.Errorf("pattern %q has no text of %d letters that is always there, by which lines could be told apart cheaply: give literals", p, minLiteral)
		}
		c.literals = append(c.literals, literals...)
	}
	if c.Exclude != "" {
		re, err := regexp.Compile(c.Exclude)
		if err != nil {
			return fmt.Errorf("exclude %q: %w", c.Exclude, err)
		}
		c.exclude = re
	}
	return nil
}

func (c *compiled) compileTemplates() (err error) {
	known := map[string]bool{}
	for name := range c.Set {
		known[name] = true
	}
	for _, re := range c.patterns {
		for _, name := range re.SubexpNames() {
			known[name] = true
		}
	}
	for _, name := range c.Ints {
		if !known[name] {
			return fmt.Errorf("ints names the field %q, which no pattern has", name)
		}
	}
	if c.Message == "" {
		return errors.New("it has no message")
	}
	if c.message, err = parseTemplate(c.Message, known); err != nil {
		return err
	}
	c.subject, err = parseTemplate(c.Subject, known)
	return err
}

// match returns the fields that the rule takes from a line, and whether it matches.
func (c *compiled) match(line string) (map[string]any, bool) {
	for _, re := range c.patterns {
		m := re.FindStringSubmatchIndex(line)
		if m == nil {
			continue
		}
		if c.exclude != nil && c.exclude.MatchString(line) {
			return nil, false
		}
		fields := make(map[string]any, len(m)/2+len(c.Set))
		for name, v := range c.Set {
			fields[name] = v
		}
		for i, name := range re.SubexpNames() {
			if name == "" || m[2*i] < 0 || m[2*i] == m[2*i+1] {
				continue
			}
			text := line[m[2*i]:m[2*i+1]]
			if !slices.Contains(c.Ints, name) {
				fields[name] = clean(text)
			} else if n, err := strconv.ParseInt(text, 10, 64); err == nil {
				fields[name] = n
			}
		}
		return fields, true
	}
	return nil, false
}

// maxField bounds a field, in bytes: log text can hold anything, and fields end up in
// Node objects.
const maxField = 256

// clean makes text from a log fit for an API object: valid UTF-8 without control
// characters, bounded.
func clean(s string) string {
	s = s[:min(len(s), maxField)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0xfffd {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// takes says whether a record is of the log that the rule is for.
func (c *compiled) takes(r *host.Record) bool {
	switch c.Source {
	case host.SourceJournal:
		return r.Unit == AnyUnit || matchAny(c.Units, r.Unit)
	case host.SourceFile:
		return r.Path == "" || matchAny(c.Paths, r.Path)
	}
	return true
}

// AnyUnit is the unit of a record of a saved log that does not say whose words it
// holds: the rules of all units apply. A record of a saved log with SourceFile and
// no path is taken likewise.
const AnyUnit = "*"

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}
