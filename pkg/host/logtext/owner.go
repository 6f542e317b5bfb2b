package logtext

import (
	"regexp"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// owner takes the prefixes off a line and finds whose words it holds.
func (p *Parser) owner(l *line) host.Record {
	if m := criLine.FindStringSubmatch(l.rest); m != nil {
		l.rec.At = parseISO(m[1])
		l.cut(len(m[0]))
		r := l.rec
		r.Source, r.Message, r.Path = host.SourceFile, l.rest, p.options.Path
		return r
	}
	if identifier, ok := l.syslog(&p.years); ok {
		if identifier == "kernel" {
			l.dmesg()
			// rsyslog writes a newline within a record as an octal number.
			return kernel(l.rec, strings.ReplaceAll(l.rest, "#012", "\n"))
		}
		return service(l.rec, identifier, l.rest)
	}
	if m := eventRow.FindStringSubmatch(l.rest); m != nil {
		l.cut(len(m[0]))
		if m[1] == "kernel-monitor" {
			return kernel(l.rec, l.rest)
		}
		return service(l.rec, m[1], l.rest)
	}
	if p.options.Source == host.SourceJournal && p.options.Unit != "" && p.options.Unit != "kernel" {
		return p.ofUnit(l)
	}
	l.dmesg()
	if l.indents {
		if m := monoKernel.FindString(l.rest); m != "" {
			l.cut(len(m))
			return kernel(l.rec, l.rest)
		}
	}
	if identifier, ok := l.service(l.indents); ok {
		r := service(l.rec, identifier, l.rest)
		if l.kernel {
			// A service wrote it to the kernel's log.
			r.Source, r.Kernel = host.SourceKmsg, false
		}
		return r
	}
	if l.kernel {
		return kernel(l.rec, l.rest)
	}
	return p.unnamed(l.rec, l.rest)
}

// ofUnit takes a line of a unit that is known: only its own name may precede the
// words. Whatever else it looks like, a service wrote it.
func (p *Parser) ofUnit(l *line) host.Record {
	if m := bareService.FindStringSubmatch(l.rest); m != nil {
		identifier := m[1] + m[3]
		if unitOf(identifier) == p.options.Unit {
			l.cut(len(m[0]))
		}
	}
	return p.unnamed(l.rec, l.rest)
}

// unnamed makes the record of a line that does not say whose words it holds.
func (p *Parser) unnamed(r host.Record, message string) host.Record {
	if p.options.Source != host.SourceJournal {
		return kernel(r, message)
	}
	r.Source, r.Message = host.SourceJournal, message
	switch p.options.Unit {
	case "":
		r.Unit, r.Kernel = AnyUnit, true
	case "kernel":
		r.Kernel = true
	case "systemd":
		r = service(r, "systemd", message)
	default:
		r.Unit = p.options.Unit
	}
	return r
}

// kernel makes a record of the kernel's, unless its facility says otherwise.
func kernel(r host.Record, message string) host.Record {
	r.Source, r.Message = host.SourceKmsg, message
	r.Kernel = r.Facility == host.Unknown || r.Facility == host.FacilityKernel
	return r
}

// aboutUnit finds the unit that systemd speaks about.
var aboutUnit = regexp.MustCompile(`^(?:(?:Starting|Started|Stopping|Stopped|Failed to start|Unit|Reloading) )?([\w@.\\:-]+\.(?:service|socket|mount|slice|scope|target|timer|device|swap|path))(?:[: .]|$)`)

// service makes a record of a service, by its syslog identifier.
func service(r host.Record, identifier, message string) host.Record {
	r.Source, r.Message, r.Identifier, r.Kernel = host.SourceJournal, message, identifier, false
	if identifier == "systemd" {
		r.FromManager = true
		if m := aboutUnit.FindStringSubmatch(message); m != nil {
			r.Unit = m[1]
		}
		return r
	}
	r.Unit = unitOf(strings.Trim(identifier, "()"))
	return r
}
