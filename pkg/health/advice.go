package health

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed advice.tsv
var adviceTSV string

// Advice is what a reason means and what a person should do, in words.
type Advice struct {
	// Meaning is what is wrong and what follows from it.
	Meaning string
	// Action is what an operator should do.
	Action string
}

// NewAdvice parses the embedded texts, by reason code as the catalogue writes it. A
// malformed row is a defect of the build and panics; a test loads it and holds it
// against the catalogue.
func NewAdvice() map[string]Advice {
	out := map[string]Advice{}
	lines := strings.Split(strings.TrimSpace(adviceTSV), "\n")
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			panic(fmt.Sprintf("health: advice.tsv: %d fields in %q", len(f), line))
		}
		out[f[0]] = Advice{Meaning: f[1], Action: f[2]}
	}
	return out
}
