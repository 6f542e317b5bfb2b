package journal

import "github.com/ekslogs/ekslogs/pkg/host"

// Parser makes records of lines that "journalctl -o json" wrote, for logs that were
// saved. It is for one goroutine at a time; its zero value is ready.
type Parser struct {
	dec  decoder
	conv converter
}

// Parse parses one line. The record keeps no reference to it.
func (p *Parser) Parse(line []byte) (host.Record, error) {
	var e entry
	if err := p.dec.decode(line, &e); err != nil {
		return host.Record{}, err
	}
	r := p.conv.record(&e)
	if cap(p.dec.scratch) > keepBuffer {
		p.dec.scratch = nil
	}
	return r, nil
}
