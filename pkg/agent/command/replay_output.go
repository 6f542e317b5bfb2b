package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// replayLine is one line of "node-agent replay -o json", version 1 of docs/replay.md.
// Fields may be added; these keep their names and meaning.
type replayLine struct {
	Reason    string               `json:"reason"`
	Severity  health.Severity      `json:"severity"`
	Condition health.ConditionType `json:"condition"`
	Subject   string               `json:"subject"`
	Message   string               `json:"message"`
	Fields    map[string]any       `json:"fields"`
	Origin    health.Origin        `json:"origin"`
	At        string               `json:"at"`
	Line      int                  `json:"line"`
	// File is the file of the bundle that Line counts in; absent for a single text.
	File string `json:"file,omitempty"`
}

// findingPrinter prints findings as they come: each incident once, unless all are
// asked for.
type findingPrinter struct {
	out  io.Writer
	json bool
	all  bool
	// file is the file that is being read, where there are several.
	file string
	told map[incidentKey]bool
}

// maxTold bounds the incidents that are remembered; beyond it, one may be told twice.
const maxTold = 1 << 16

func (p *findingPrinter) findings(found []health.Finding) error {
	for _, f := range found {
		key := incidentKey{f.Condition, f.Reason, f.Subject, f.Severity}
		if p.told[key] && !p.all {
			continue
		}
		if len(p.told) < maxTold {
			p.told[key] = true
		}
		if err := p.print(f); err != nil {
			return err
		}
	}
	return nil
}

func (p *findingPrinter) print(f health.Finding) error {
	line := replayLine{
		Reason: f.Reason, Severity: f.Severity, Condition: f.Condition, Subject: f.Subject,
		Message: f.Message, Fields: f.Fields, Origin: f.Origin, File: p.file,
	}
	if line.Fields == nil {
		line.Fields = map[string]any{}
	}
	if !f.At.IsZero() {
		line.At = f.At.UTC().Format(time.RFC3339Nano)
	}
	if n, ok := strings.CutPrefix(f.Position, "line/"); ok {
		line.Line, _ = strconv.Atoi(n) // our own parser wrote it
	}
	if p.json {
		b, err := json.Marshal(line)
		if err != nil {
			return err
		}
		_, err = p.out.Write(append(b, '\n'))
		return err
	}
	where := strconv.Itoa(line.Line)
	if p.file != "" {
		where = p.file + ":" + where
	}
	if line.Subject != "" {
		line.Subject = " [" + line.Subject + "]"
	}
	_, err := fmt.Fprintf(p.out, "%-8s%-8s%s%s: %s\n", where, f.Severity, f.Reason, line.Subject, f.Message)
	return err
}
