package nvidia

import (
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Window is how long one fault may print lines: what a GPU says within it is one
// incident.
const Window = 2 * time.Second

// precedingWindow is how long an application's Xid is remembered as what came before
// a worse one.
const precedingWindow = 2 * time.Minute

// maxOpen bounds the incidents that are open at once: a node has at most some dozen
// devices, but log text can name any.
const maxOpen = 256

// Options are what a Detector can be told.
type Options struct {
	// Hold is how long the first line of an incident is held back for the rest, at
	// most Window. 0 means Window, which gives one finding for each incident and suits
	// saved logs. A live agent uses less, since the node's condition waits for it; if
	// what comes later is worse, a second finding tells that.
	Hold time.Duration
	// Driver is the branch of the driver that is loaded (575 for 575.57.08), 0 when
	// unknown. The log's own banner, where there is one, overrides it.
	Driver int
	// Identities are what the GPUs are called, shared with others that know; nil means
	// that the log alone tells.
	Identities *Identities
	// Suspects, if set, is told which processes the GPUs blame.
	Suspects *Suspects
}

// Detector finds the faults that the NVIDIA drivers print to the kernel's log. It
// implements detect.Detector.
type Detector struct {
	options Options
	tables  tables
	gpus    *Identities
	driver  int
	// lastBanner is the address of the GPU whose banner was the last one read.
	lastBanner string
	bus        busReader
	now        time.Time
	open       []*incident
	recent     map[string]*event
	misses     uint64
}

// NewDetector returns a detector that has seen nothing.
func NewDetector(o Options) *Detector {
	if o.Hold <= 0 || o.Hold > Window {
		o.Hold = Window
	}
	t, err := loadTables()
	if err != nil {
		// The tables are part of the program, and a test parses each row.
		panic("nvidia: " + err.Error())
	}
	if o.Identities == nil {
		o.Identities = &Identities{}
	}
	return &Detector{options: o, tables: t, driver: o.Driver, gpus: o.Identities, recent: map[string]*event{}}
}

// Misses is how many lines looked like an Xid and named no device or no code.
func (d *Detector) Misses() uint64 { return d.misses }

// Detect implements detect.Detector.
func (d *Detector) Detect(r host.Record) []health.Finding {
	d.now = clock(r, d.now)
	var out []health.Finding
	if len(d.open) > 0 {
		out = d.advance(d.now)
	}
	if f, ok := memoryErrorFinding(r); ok {
		return append(out, f)
	}
	if !ours(r) {
		return out
	}
	message := strings.ReplaceAll(r.Message, `\x0a`, "\n")
	if pci, id, ok := d.bus.whole(message); ok {
		return append(out, d.take(d.offBusEvent(pci, id, r))...)
	}
	for line := range strings.SplitSeq(message, "\n") {
		out = append(out, d.line(strings.TrimSpace(line), r)...)
	}
	return out
}

// ours says cheaply whether a record can be of interest: the kernel's log, and one
// of the words that all our lines hold. A record of a service never is, whatever it
// quotes.
func ours(r host.Record) bool {
	if !r.Kernel && r.Source != host.SourceKmsg {
		return false
	}
	m := r.Message
	return strings.Contains(m, "NVRM: ") || strings.Contains(m, "nvidia-nvswitch") || strings.Contains(m, "libnccl") ||
		// The parts of a message that a tool has cut at its newlines.
		strings.Contains(m, "(PCI ID: ") || strings.Contains(m, "fallen off the bus")
}

func (d *Detector) line(line string, r host.Record) []health.Finding {
	if r.Kernel && d.banner(line) {
		return nil
	}
	if f, ok := ncclFinding(line, r); ok {
		return []health.Finding{f}
	}
	if e := d.sxidEvent(line, r); e != nil {
		return d.take(e)
	}
	if strings.HasPrefix(line, xidPrefix) {
		x, ok := parseXid(line)
		if !ok {
			d.misses++
			return nil
		}
		return d.take(d.withCause(x, r))
	}
	if m := fallenRE.FindStringSubmatch(line); m != nil {
		return d.take(d.offBusEvent(m[1], "", r))
	}
	if pci, id, first, ok := d.bus.line(line, r); ok {
		return d.take(d.offBusEvent(pci, id, first))
	}
	return nil
}

// withCause judges an Xid. One that names its cause belongs to the incident of that
// Xid, and is nothing by itself when there is none: then the event is nil.
func (d *Detector) withCause(x xidLine, r host.Record) *event {
	e := d.xidEvent(x, r)
	if x.causedBy == 0 {
		return e
	}
	for _, in := range d.open {
		if in.kind == gpu && in.pci == e.pci && in.kernel == r.Kernel && in.find(x.causedBy) != nil {
			in.add(e, d.now)
			return nil
		}
	}
	return nil
}

// take puts an event into its incident, or begins one.
func (d *Detector) take(e *event) []health.Finding {
	if e == nil {
		return nil
	}
	if e.recovery != nil && e.recovery.to == RecoveryNone {
		return d.recovered(e)
	}
	d.blame(e)
	for _, in := range d.open {
		if in.takes(e, d.now, Window) {
			if in.add(e, d.now) && in.due.IsZero() {
				in.due = d.now.Add(d.options.Hold)
			}
			return nil
		}
	}
	var out []health.Finding
	if len(d.open) >= maxOpen {
		out = d.advance(time.Time{})
	}
	in := &incident{kind: e.kind, pci: e.pci, kernel: e.record.Kernel, first: d.now, due: d.now.Add(d.options.Hold)}
	if p := d.recent[e.pci]; p != nil && e.kind == gpu && e.severity == health.Fatal && in.kernel && within(clock(p.record, d.now), d.now, precedingWindow) {
		in.before = p
	}
	in.add(e, d.now)
	d.open = append(d.open, in)
	if e.kind == gpu && applicationClass(e.code) && in.kernel && (d.recent[e.pci] != nil || len(d.recent) < maxIdentities) {
		d.recent[e.pci] = e
	}
	return out
}

// recovered tells what the GPU said until now, and then that it is over.
func (d *Detector) recovered(e *event) []health.Finding {
	var out []health.Finding
	kept := d.open[:0]
	for _, in := range d.open {
		if in.kind == gpu && in.pci == e.pci && in.kernel == e.record.Kernel {
			if !in.due.IsZero() {
				out = append(out, d.finding(in))
			}
			continue
		}
		kept = append(kept, in)
	}
	d.open = kept
	in := &incident{kind: gpu, pci: e.pci, kernel: e.record.Kernel}
	in.add(e, d.now)
	f := d.finding(in)
	// User space must not be able to hide a fault.
	f.Clears = e.record.Kernel
	return append(out, f)
}

// Due implements detect.Detector.
func (d *Detector) Due() time.Time {
	var due time.Time
	for _, in := range d.open {
		if !in.due.IsZero() && (due.IsZero() || in.due.Before(due)) {
			due = in.due
		}
	}
	return due
}

// Flush implements detect.Detector.
func (d *Detector) Flush(now time.Time) []health.Finding {
	if now.After(d.now) {
		d.now = now
	}
	return d.advance(now)
}

// advance tells what is due at now, or everything when now is zero, and forgets
// incidents that are over. When the clock has been set back, what was held is due.
func (d *Detector) advance(now time.Time) []health.Finding {
	var out []health.Finding
	kept := d.open[:0]
	for _, in := range d.open {
		all := now.IsZero()
		back := !all && now.Before(in.first.Add(-Window))
		if !in.due.IsZero() && (all || back || !now.Before(in.due)) {
			out = append(out, d.finding(in))
			in.due = time.Time{}
		}
		if !all && within(in.last, now, Window) {
			kept = append(kept, in)
		}
	}
	clear(d.open[len(kept):])
	d.open = kept
	return out
}
