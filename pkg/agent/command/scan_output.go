package command

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

func printScanJSON(w io.Writer, r scanReport) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// Widths of the table: what a terminal that does not tell its own has.
const (
	scanWidth    = 120
	minScanWidth = 60
)

// printScan prints what is wrong, the GPUs, and what could not be looked at. Text of
// the host is cleaned: it must not drive the terminal.
func printScan(w io.Writer, environ []string, r scanReport) error {
	out := term.New(w, environ, term.Auto)
	width, _ := out.Size()
	if width == 0 {
		width = scanWidth
	}
	width = max(width, minScanWidth)
	if len(r.Findings) > 0 {
		t := scanTable(width).Headers("SEVERITY", "WHAT", "WHY AND EVIDENCE", "WHAT TO DO")
		for _, f := range r.Findings {
			role := term.Warn
			if f.Severity == health.Fatal {
				role = term.Bad
			}
			what := out.Paint(term.Title, f.Reason)
			if f.Subject != "" {
				what += "\n" + term.Clean(f.Subject)
			}
			why := term.Clean(f.Message)
			if f.Evidence != "" {
				why += "\n" + out.Paint(term.Dim, term.Clean(f.Evidence))
			}
			t.Row(out.Paint(role, string(f.Severity)), what, why, f.Action)
		}
		if _, err := fmt.Fprintln(out, t); err != nil {
			return err
		}
	}
	if len(r.GPUs) > 0 {
		t := scanTable(width).Headers("GPU", "UUID", "PCI", "TEMP", "ECC", "REMAPS", "NVLINK", "VERDICT", "REASON")
		for _, g := range r.GPUs {
			t.Row(g.Index, g.UUID, g.PCI, g.Temperature, g.ECC, g.Remaps, g.NVLink, g.Verdict, g.Reason)
		}
		if _, err := fmt.Fprintln(out, t); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Blind)) {
		if _, err := fmt.Fprintf(out, "%s %s: %s\n", out.Paint(term.Warn, "not checked:"), name, term.Clean(r.Blind[name])); err != nil {
			return err
		}
	}
	summary := out.Paint(term.Good, "nothing is wrong")
	if n := len(r.Findings); n > 0 {
		summary = out.Paint(term.Bad, fmt.Sprintf("%d wrong", n))
	}
	_, err := fmt.Fprintf(out, "%s, by %d checks\n", summary, r.Checks)
	return err
}

func scanTable(width int) *table.Table {
	cell := lipgloss.NewStyle().PaddingRight(1)
	return table.New().Width(width).BorderColumn(true).BorderRow(true).Wrap(true).
		StyleFunc(func(int, int) lipgloss.Style { return cell })
}
