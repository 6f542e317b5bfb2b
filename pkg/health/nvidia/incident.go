package nvidia

import (
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// maxCodes bounds how many different codes one incident tells.
const maxCodes = 32

// incident is what one fault printed about one device.
type incident struct {
	kind kind
	pci  string
	// kernel is false when user space wrote the lines: such lines never join those of
	// the kernel.
	kernel bool
	// first and last are the times of the first and the last line.
	first, last time.Time
	// due is when to tell what is known; zero when it has been told.
	due time.Time
	// events holds one event for each code, in the order of their first lines. Later
	// lines of a code add the fields that the first one lacked.
	events []*event
	lines  int64
	lead   *event
	// recovery is the last thing that the driver asked for.
	recovery *recoveryChange
	// before is the last application's Xid on the device before this incident.
	before *event
}

// takes says whether an event at now belongs to the incident: all that is printed
// within window does, and after that only what goes on from it (more lines of a code
// that it has, and channels that are torn down).
func (in *incident) takes(e *event, now time.Time, window time.Duration) bool {
	if in.kind != e.kind || in.pci != e.pci || in.kernel != e.record.Kernel {
		return false
	}
	if within(in.first, now, window) {
		return true
	}
	if !within(in.last, now, window) {
		return false
	}
	return e.kind == gpu && (e.code == 43 || e.code == 45) || in.find(e.code) != nil
}

// within says that the two times are at most d apart; a clock may have been set back.
func within(a, b time.Time, d time.Duration) bool {
	gap := b.Sub(a)
	return gap <= d && gap >= -d
}

func (in *incident) find(code int) *event {
	for _, e := range in.events {
		if e.code == code {
			return e
		}
	}
	return nil
}

// add takes an event in and says whether there is something new to tell.
func (in *incident) add(e *event, now time.Time) bool {
	in.last = now
	in.lines++
	news := false
	if e.recovery != nil && (in.recovery == nil || in.recovery.to != e.recovery.to) {
		in.recovery, news = e.recovery, true
	}
	switch same := in.find(e.code); {
	case same == nil && len(in.events) < maxCodes:
		in.events = append(in.events, e)
	case same == nil:
		return news
	case e.severity.Rank() > same.severity.Rank():
		// Another link, another verdict: the worse line speaks for the code.
		e.merge(same)
		*same = *e
		e = same
		news = in.lead == same
	default:
		same.merge(e)
		e = same
	}
	if in.lead == nil || e != in.lead && e.worse(in.lead) {
		in.lead, news = e, true
	}
	return news
}

// merge adds the fields that e lacks, and collects links.
func (e *event) merge(o *event) {
	e.addLink(o)
	for k, v := range o.fields {
		if _, ok := e.fields[k]; !ok {
			e.fields[k] = v
		}
	}
}

// maxLinks is more than any GPU or NVSwitch has.
const maxLinks = 144

func (e *event) addLink(o *event) {
	link, ok := o.fields["link"].(int64)
	if !ok {
		return
	}
	own, ok := e.fields["link"].(int64)
	if !ok {
		return
	}
	links, _ := e.fields["links"].([]int64)
	if links == nil {
		links = []int64{own}
	}
	for _, l := range links {
		if l == link {
			return
		}
	}
	if len(links) < maxLinks {
		e.fields["links"] = append(links, link)
	}
}

// relations sorts the other codes of an incident by what they are to its lead.
type relations struct {
	details, consequences, related []int64
	relatedPID                     int64
	preceding                      *event
}

func (in *incident) relations() relations {
	var r relations
	r.preceding = in.before
	afterLead := false
	for _, e := range in.events {
		if e == in.lead {
			afterLead = true
			continue
		}
		code := int64(e.code)
		switch {
		case e.recovery != nil:
		case in.kind == nvswitch:
			r.related = append(r.related, code)
		case eccRoot(in.lead.code) && eccDetail(e.code):
			r.details = append(r.details, code)
		case e.code == 43 || e.code == 45 || in.lead.code == 79 && symptom(e.code):
			r.consequences = append(r.consequences, code)
		case !afterLead && applicationClass(e.code) && in.lead.severity != e.severity:
			r.preceding = e
		default:
			r.related = append(r.related, code)
			if r.relatedPID == 0 {
				r.relatedPID = e.pid()
			}
		}
	}
	return r
}

// eccRoot are the codes that say that memory is bad.
func eccRoot(code int) bool { return code == 48 || code == 94 || code == 95 || code == 140 }

// eccDetail are those that say where, and what was done about it.
func eccDetail(code int) bool {
	switch code {
	case 63, 64, 156, 157, 160, 161, 171, 172:
		return true
	}
	return false
}

// clock is the time of a record as pkg/health/detect defines it.
func clock(r host.Record, last time.Time) time.Time {
	switch {
	case !r.At.IsZero():
		return r.At
	case r.Monotonic != 0:
		return time.Unix(0, 0).UTC().Add(r.Monotonic)
	}
	return last
}
