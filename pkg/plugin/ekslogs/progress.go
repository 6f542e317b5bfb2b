package ekslogs

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// progress tells a person how far it has come. It is safe for concurrent use.
type progress interface {
	// phase says what a node is at now.
	phase(node, what string)
	// bytes says how much of a bundle is here; a total of -1 is not known.
	bytes(node string, done, total int64)
	// remark says what a person should know of a node that goes on.
	remark(node, text string)
	// notice is for what concerns no node.
	notice(text string)
	// end tells how a node ended.
	end(*Result)
	// close ends the telling: what is drawn over is removed.
	close()
}

// newProgress returns live lines on a terminal, plain lines elsewhere, and only
// errors and remarks if quiet.
func newProgress(screen *term.Stream, quiet bool, nodes []string) progress {
	width := 0
	for _, n := range nodes {
		width = max(width, len(n))
	}
	if screen.Live() && !quiet {
		return newLiveProgress(screen, nodes, width)
	}
	return &plainProgress{teller: teller{screen: screen, told: map[string]string{}}, quiet: quiet, last: map[string]string{}}
}

// teller makes the lines that stay.
type teller struct {
	screen *term.Stream
	// told maps a failure's text to the first node that had it: forty nodes without the
	// same right are told of once.
	told map[string]string
}

func (t *teller) remarkLine(node, text string) string {
	return t.screen.Paint(term.Warn, "!") + " " + node + ": " + term.CleanLines(text)
}

// endLines tells how a node ended, in full for a failure.
func (t *teller) endLines(r *Result) []string {
	switch r.State {
	case StateFailed:
		text := term.CleanLines(r.Error)
		if first, ok := t.told[text]; ok {
			text = "failed as " + first
		} else {
			t.told[text] = r.Node
		}
		return strings.Split(t.screen.Paint(term.Bad, "✘")+" "+r.Node+": "+text, "\n")
	case StateSkipped:
		return []string{t.screen.Paint(term.Dim, "–") + " " + r.Node + ": " + r.File + " is here already"}
	}
	line := t.screen.Paint(term.Good, "✔") + " " + r.Node + ": " + r.File + ", " + term.Bytes(r.Bytes)
	if r.Errors != nil && *r.Errors > 0 {
		line += fmt.Sprintf(", %d of %s failed", *r.Errors, plural(*r.Items, "item"))
	}
	return []string{line}
}

// plainProgress writes one line for each change.
type plainProgress struct {
	mu sync.Mutex
	teller
	quiet bool
	last  map[string]string
}

func (p *plainProgress) line(s string) { fmt.Fprintln(p.screen, s) }

func (p *plainProgress) phase(node, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.quiet && p.last[node] != what {
		p.last[node] = what
		p.line("  " + node + ": " + what)
	}
}

func (p *plainProgress) bytes(string, int64, int64) {}

func (p *plainProgress) remark(node, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(p.remarkLine(node, text))
}

func (p *plainProgress) notice(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(text)
}

func (p *plainProgress) end(r *Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet && r.State != StateFailed {
		return
	}
	for _, l := range p.endLines(r) {
		p.line(l)
	}
}

func (p *plainProgress) close() {}

// rate is bytes a second over about the last second.
type rate struct {
	at    time.Time
	bytes int64
	value float64
}

func (r *rate) add(now time.Time, bytes int64) {
	if r.at.IsZero() || bytes < r.bytes {
		r.at, r.bytes, r.value = now, bytes, 0
		return
	}
	if span := now.Sub(r.at); span >= time.Second {
		r.value = float64(bytes-r.bytes) / span.Seconds()
		r.at, r.bytes = now, bytes
	}
}
