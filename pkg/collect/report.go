package collect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// indexText is index.txt: every item with what became of it.
func indexText(m *bundle.Manifest) []byte {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "STATUS\tBYTES\tMS\tPATH\tNOTE")
	for i := range m.Items {
		it := &m.Items[i]
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", it.Status, it.Bytes, it.MS, it.Path, brief(it))
	}
	// A bytes.Buffer does not fail.
	_ = w.Flush()
	return b.Bytes()
}

// errorsText is errors.txt: what failed and what was cut. Empty when nothing was.
func errorsText(m *bundle.Manifest) []byte {
	var b bytes.Buffer
	for i := range m.Items {
		it := &m.Items[i]
		switch {
		case it.Status == bundle.StatusFailed:
			fmt.Fprintf(&b, "%s: %s\n", it.Path, brief(it))
		case it.Truncated:
			fmt.Fprintf(&b, "%s: truncated: %s\n", it.Path, oneLine(it.Error))
		}
	}
	if m.Abandoned > 0 {
		fmt.Fprintf(&b, "%d children or reads could not be ended and were abandoned; they are named above as \"abandoned\"\n", m.Abandoned)
	}
	return b.Bytes()
}

// summaryText is summary.txt: the node, what is wrong with it, what is missing.
func summaryText(m *bundle.Manifest, findings []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Node      %s\nPlatform  %s\nKernel    %s\nBoot      %s\nTaken     %s to %s UTC\nAgent     %s\nContent   %s\n\n",
		m.Node, strings.Join(m.Platform, ", "), m.Kernel, m.BootID,
		m.StartedAt.Format("2006-01-02 15:04:05"), m.FinishedAt.Format("15:04:05"), m.AgentVersion, strings.Join(m.Categories, ", "))
	fmt.Fprintf(&b, "Health\n%s\n", findingsText(findings))
	fmt.Fprintf(&b, "Items     %d collected, %d empty, %d absent on this node, %d failed (index.txt has all)\n",
		m.Count(bundle.StatusOK), m.Count(bundle.StatusEmpty), m.Count(bundle.StatusAbsent), m.Count(bundle.StatusFailed))
	if len(m.Redactions) > 0 {
		var kinds []string
		for _, k := range sortedKeys(m.Redactions) {
			kinds = append(kinds, fmt.Sprintf("%d %s", m.Redactions[k], k))
		}
		fmt.Fprintf(&b, "Redacted  %s\n", strings.Join(kinds, ", "))
	}
	if text := errorsText(m); len(text) > 0 {
		fmt.Fprintf(&b, "\nNot collected, or not whole\n")
		for line := range strings.Lines(string(text)) {
			fmt.Fprintf(&b, "  %s", line)
		}
	}
	return b.Bytes()
}

// findingsText renders the findings that the caller gave. It needs only what every
// version of them has.
func findingsText(findings []byte) string {
	var health struct {
		Findings *[]struct {
			Severity, Reason, Subject, Message, Evidence string
		}
	}
	if len(findings) == 0 || json.Unmarshal(findings, &health) != nil || health.Findings == nil {
		return "  not watched: no monitor of this agent handed findings over\n"
	}
	if len(*health.Findings) == 0 {
		return "  no fault is known\n"
	}
	var b strings.Builder
	for _, f := range *health.Findings {
		text := f.Message
		if text == "" {
			text = f.Evidence
		}
		fmt.Fprintf(&b, "  %s\n", oneLine(strings.Join(strings.Fields(f.Severity+" "+f.Reason+" "+f.Subject), " ")+": "+text))
	}
	return b.String()
}

// maxBrief bounds the error of an item where people read it; the manifest has the
// whole of it.
const maxBrief = 200

// brief is an item's error without the command line, which the manifest has too.
func brief(it *bundle.Item) string {
	s := oneLine(it.Error)
	if len(it.Argv) > 0 {
		s = strings.TrimPrefix(s, strings.Join(it.Argv, " ")+": ")
	}
	if len(s) > maxBrief {
		s = strings.ToValidUTF8(s[:maxBrief], "") + "…"
	}
	return s
}

// maxLine bounds what others wrote in a line of ours.
const maxLine = 2 << 10

// oneLine keeps what others wrote from looking like lines of ours, or reaching the
// terminal as more than text.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxLine)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(s))
}
