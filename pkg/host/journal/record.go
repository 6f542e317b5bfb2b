package journal

import (
	"strconv"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// converter makes records of entries. Values that come again and again are kept, so
// that a record costs one allocation.
type converter struct {
	known   map[string]string
	scratch []byte
}

// maxKnown bounds the values that are kept; units and identifiers of a node are few.
const maxKnown = 1024

func (c *converter) intern(b []byte) string {
	if s, ok := c.known[string(b)]; ok { // no allocation
		return s
	}
	s := string(b)
	if c.known == nil || len(c.known) >= maxKnown {
		c.known = make(map[string]string)
	}
	c.known[s] = s
	return s
}

func (c *converter) record(e *entry) host.Record {
	const prefix = "journal/"
	c.scratch = append(c.scratch[:0], prefix...)
	c.scratch = append(c.scratch, e.cursor...)
	position := len(c.scratch)
	c.scratch = append(c.scratch, e.message...)
	both := string(c.scratch)

	r := host.Record{
		Source: host.SourceJournal, Position: both[:position], Message: both[position:],
		Priority: number(e.priority), Facility: number(e.facility),
		Identifier: c.intern(e.identifier), Boot: c.bootID(e.boot),
		Monotonic: time.Duration(micros(e.monotonic)) * time.Microsecond,
	}
	if us := micros(e.realtime); us > 0 {
		r.At = time.UnixMicro(us)
	}
	// journald also gives the kernel's transport to what user space writes to
	// /dev/kmsg; the facility tells them apart.
	r.Kernel = string(e.transport) == "kernel" && r.Facility == host.FacilityKernel
	switch {
	case len(e.unit) > 0 && string(e.pid) == "1":
		r.Unit, r.FromManager = c.intern(e.unit), true
	default:
		r.Unit = c.intern(e.systemdUnit)
	}
	if len(e.device) > 0 || len(e.subsystem) > 0 {
		r.Keys = map[string]string{"SUBSYSTEM": string(e.subsystem), "DEVICE": string(e.device)}
	}
	if cap(c.scratch) > keepBuffer {
		c.scratch = nil
	}
	return r
}

// bootID gives a journal's boot id the dashes that the kernel and the Node write.
func (c *converter) bootID(b []byte) string {
	if len(b) != 32 {
		return c.intern(b)
	}
	var id [36]byte
	out := id[:0]
	for i, v := range b {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			out = append(out, '-')
		}
		out = append(out, v)
	}
	return c.intern(out)
}

// number parses a small number, Unknown when there is none.
func number(b []byte) int {
	n, err := strconv.ParseUint(string(b), 10, 16)
	if err != nil {
		return host.Unknown
	}
	return int(n)
}

// micros parses a timestamp, 0 when there is none.
func micros(b []byte) int64 {
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n < 0 || n > int64(1<<63-1)/1000 {
		return 0
	}
	return n
}
