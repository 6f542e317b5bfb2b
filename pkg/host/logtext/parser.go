package logtext

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/journal"
	"github.com/ekslogs/ekslogs/pkg/host/kmsg"
)

// Options say what a text is, where its lines do not.
type Options struct {
	// Source is the log that lines without a prefix are of: SourceKmsg (also when
	// empty), SourceJournal or SourceFile.
	Source host.Source
	// Unit is whose words such lines are (SourceJournal): a unit, "kernel", or
	// "systemd" for what systemd says about units. Empty means that it is unknown.
	Unit string
	// Path is the file that the text is of (SourceFile), empty when unknown.
	Path string
	// Now gives a year to stamps that have none; zero means time.Now.
	Now time.Time
}

// AnyUnit is the Unit of records of which nobody says whose words they are.
const AnyUnit = "*"

// maxRecord bounds a record that goes over several lines, in bytes. What is beyond is
// dropped.
const maxRecord = 64 << 10

// Parser makes records of lines. It keeps the last record back until the next line
// shows that no more of it follows. It is for one goroutine at a time.
type Parser struct {
	options Options
	years   years
	json    journal.Parser
	number  int

	last    *host.Record
	indents bool // further lines of last are indented
	raw     bool // last is a raw record, which dictionary lines may follow
}

// NewParser returns a parser that has seen nothing.
func NewParser(o Options) *Parser {
	if o.Now.IsZero() {
		o.Now = time.Now().UTC()
	}
	if o.Source == "" {
		o.Source = host.SourceKmsg
	}
	o.Unit = unitOf(o.Unit)
	return &Parser{options: o, years: years{now: o.Now}}
}

// unitOf completes the name of a unit as systemctl does.
func unitOf(name string) string {
	if name == "" || name == "kernel" || name == "systemd" || strings.Contains(name, ".") && !strings.HasSuffix(name, ".daemon") {
		return name
	}
	return name + ".service"
}

// Line takes the next line, without its newline, and returns the record before it, now
// that it is whole; nil when there is none.
func (p *Parser) Line(text string) *host.Record {
	p.number++
	text = strings.TrimSuffix(text, "\r")
	if p.more(text) {
		return nil
	}
	whole := p.Flush()
	r, indents, raw := p.parse(text)
	if strings.TrimSpace(r.Message) == "" {
		return whole
	}
	r.Position = "line/" + strconv.Itoa(p.number)
	p.last, p.indents, p.raw = &r, indents, raw
	return whole
}

// Flush returns the last record, nil when there is none: nothing more of it is coming.
func (p *Parser) Flush() *host.Record {
	r := p.last
	p.last = nil
	return r
}

// LineNumber is how many lines there were.
func (p *Parser) LineNumber() int { return p.number }

// more takes a line that belongs to the last record, and says whether it does.
func (p *Parser) more(text string) bool {
	if p.last == nil || text == "" || text[0] != ' ' && text[0] != '\t' {
		return false
	}
	if p.raw {
		key, value, ok := strings.Cut(text[1:], "=")
		if ok {
			if p.last.Keys == nil {
				p.last.Keys = map[string]string{}
			}
			p.last.Keys[key] = value
		}
		return ok
	}
	if !p.indents {
		return false
	}
	if len(p.last.Message)+len(text) > maxRecord {
		return true // it is nobody else's
	}
	p.last.Message += "\n" + strings.TrimLeft(text, " \t")
	return true
}

var rawRecord = regexp.MustCompile(`^\d{1,4},\d+,\d+,[^;]{0,64};`)

// parse makes a record of one line.
func (p *Parser) parse(text string) (r host.Record, indents, raw bool) {
	if p.options.Source == host.SourceFile {
		r = host.Record{Source: host.SourceFile, Path: p.options.Path, Message: text, Priority: host.Unknown, Facility: host.Unknown}
		return r, false, false
	}
	if r, ok := p.journalJSON(text); ok {
		return r, false, false
	}
	if rawRecord.MatchString(text) {
		if k, err := kmsg.Parse([]byte(text)); err == nil {
			return host.Record{
				Source: host.SourceKmsg, Message: k.Message, Priority: k.Priority, Facility: k.Facility,
				Kernel: k.Facility == host.FacilityKernel, Monotonic: k.Monotonic, Keys: k.Keys,
			}, false, true
		}
	}
	l := &line{rest: text, rec: host.Record{Priority: host.Unknown, Facility: host.Unknown}}
	r = p.owner(l)
	if r.At.IsZero() && r.Monotonic == 0 {
		r.At = p.years.own(r.Message)
	}
	return r, l.indents, false
}

func (p *Parser) journalJSON(text string) (host.Record, bool) {
	if !strings.HasPrefix(text, "{") || !strings.Contains(text, `"MESSAGE"`) {
		return host.Record{}, false
	}
	r, err := p.json.Parse([]byte(text))
	if err != nil {
		return host.Record{}, false
	}
	switch {
	case r.Facility == host.Unknown && r.Identifier == "kernel" && r.Unit == "":
		r.Kernel = true // a text that names no facility
	case !r.Kernel && r.Unit == "" && r.Identifier == "":
		return p.unnamed(r, r.Message), true
	case !r.Kernel && r.Unit == "" && r.Identifier != "kernel":
		r = service(r, r.Identifier, r.Message)
	}
	return r, true
}
