package gpustate

import "fmt"

// Row is a GPU in words, for a table. What is not known is "-".
type Row struct {
	Index       string `json:"index"`
	UUID        string `json:"uuid"`
	PCI         string `json:"pci"`
	Temperature string `json:"temperature"`
	// ECC is how many errors could not be corrected: since the driver was loaded, and
	// ever.
	ECC string `json:"ecc"`
	// Remaps is how many rows of memory were replaced, and whether more are to be.
	Remaps string `json:"remaps"`
	// NVLink is how many links are up, of how many.
	NVLink  string `json:"nvlink"`
	Verdict string `json:"verdict"`
	Reason  string `json:"reason"`
}

// Table puts a sample into rows. verdict tells what is to be done about a GPU, and by
// which reason.
func Table(s State, verdict func(GPU) (verdict, reason string)) []Row {
	rows := make([]Row, 0, len(s.GPUs))
	for _, g := range s.GPUs {
		r := Row{Index: itoa(g.Index), UUID: orDash(g.UUID), PCI: orDash(g.PCI), Temperature: "-", ECC: "-", Remaps: g.Rows.words(), NVLink: "-"}
		if g.Temperature != nil {
			r.Temperature = fmt.Sprintf("%d C", *g.Temperature)
		}
		if g.ECC != nil {
			r.ECC = fmt.Sprintf("%d/%d", g.ECC.VolatileUncorrected, g.ECC.AggregateUncorrected)
		}
		if n := len(g.Links); n > 0 {
			up := 0
			for _, active := range g.Links {
				if active {
					up++
				}
			}
			r.NVLink = fmt.Sprintf("%d/%d", up, n)
		}
		r.Verdict, r.Reason = verdict(g)
		r.Reason = orDash(r.Reason)
		rows = append(rows, r)
	}
	return rows
}

func (r *Rows) words() string {
	switch {
	case r == nil:
		return "-"
	case r.Failure:
		return "failed"
	case r.Pending:
		return itoa(r.Correctable+r.Uncorrectable) + ", pending"
	}
	return itoa(r.Correctable + r.Uncorrectable)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
