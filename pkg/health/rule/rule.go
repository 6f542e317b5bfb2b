// Package rule is the part of detection that needs no code: rules, written in YAML,
// that make findings of single lines of a log and count them over a window. The
// rules of the product are in the directory rules, one file a condition; operators
// add their own in a directory of the configuration. docs/rules.md is the manual.
package rule

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Rule turns lines of a log into findings. Its fields are the keys of the YAML.
type Rule struct {
	// ID names the rule. It is unique among all rules.
	ID string `json:"id"`
	// Source is the log: kmsg for what the kernel says (read from /dev/kmsg or from
	// the journal), journal for what services say, file for files of text.
	Source host.Source `json:"source"`
	// Units are the units whose words the rule takes (Source journal), matched as
	// "journalctl -u" matches them, shell patterns included.
	Units []string `json:"units,omitempty"`
	// Paths are shell patterns of files (Source file). A pattern for a file also takes
	// its rotated and restarted neighbours when it says so itself ("*.log").
	Paths []string `json:"paths,omitempty"`
	// Patterns are regular expressions (RE2) of which one must match. The first that
	// does gives the fields: its named groups.
	Patterns []string `json:"patterns"`
	// Exclude is a regular expression that must not match, optional.
	Exclude string `json:"exclude,omitempty"`
	// Literals are strings of which one occurs in every line that the rule matches.
	// They need not be given: they are derived from Patterns where that can be done.
	Literals []string `json:"literals,omitempty"`
	// Ints are the fields that are whole decimal numbers.
	Ints []string `json:"ints,omitempty"`
	// Set are fields with a value that is always the same.
	Set map[string]string `json:"set,omitempty"`
	// Reason is a code of the catalogue.
	Reason string `json:"reason"`
	// Severity is the catalogue's unless it is given.
	Severity health.Severity `json:"severity,omitempty"`
	// Subject says what is at fault, as a template: what agrees in it is one incident.
	Subject string `json:"subject,omitempty"`
	// Message is one sentence for a person, as a template. It must not name fields
	// that change each time (counters, pids).
	Message string `json:"message"`
	// Rank decides when several rules match one line: the highest alone reports, the
	// earlier in the list among equals. The default is 0. Give a catch-all a negative
	// one.
	Rank int `json:"rank,omitempty"`
	// Window, when given, says how many lines it takes.
	Window *Window `json:"window,omitempty"`
	// Samples prove the rule. They are checked each time it is loaded.
	Samples Samples `json:"samples"`
}

// Window says how many lines about one subject make a finding. Time is that of the
// records.
type Window struct {
	// Count is how many lines it takes within Within.
	Count int `json:"count"`
	// Within is the length of the sliding window.
	Within metav1.Duration `json:"within"`
	// Span is the least time from the first to the last of them, optional.
	Span metav1.Duration `json:"span,omitempty"`
	// AtEnd reports what was counted when a saved log ends before the window does:
	// nothing in it says that the lines stopped.
	AtEnd bool `json:"atEnd,omitempty"`
}

// Samples are lines that a rule must and must not match.
type Samples struct {
	Match   []Sample `json:"match"`
	NoMatch []string `json:"noMatch"`
}

// Sample is a line that a rule must match, being the one that reports it, and what it
// must make of it.
type Sample struct {
	// Text is the message of the record, without the prefix of the tool that prints it.
	Text string `json:"text"`
	// Fields are all fields that the rule must extract, Set included.
	Fields map[string]any `json:"fields,omitempty"`
	// Subject is compared when it is not empty.
	Subject string `json:"subject,omitempty"`
}

// File is a file of rules.
type File struct {
	metav1.TypeMeta `json:",inline"`
	Rules           []Rule `json:"rules"`
}

// The kind of a file of rules.
const (
	APIVersion = "ekslogs.io/v1alpha1"
	Kind       = "RuleList"
)

// within is the window's length as time.Duration, zero without a window.
func (r *Rule) within() time.Duration {
	if r.Window == nil {
		return 0
	}
	return r.Window.Within.Duration
}
