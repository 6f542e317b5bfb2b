package detect

import (
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/incident"
	"github.com/ekslogs/ekslogs/pkg/health/neuron"
	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/health/rule"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/logtext"
)

// Options are what a Pipeline is made of. The zero value is the product as it ships.
type Options struct {
	// Rules are the rules; nil means those of the product.
	Rules []rule.Rule
	// Catalog is the catalogue of reasons; nil means a new one.
	Catalog *health.Catalog
	// TrustUserspace takes what user space writes to the kernel's log for the kernel's
	// own. It is for drills and tests.
	TrustUserspace bool
	// Incident is what the detectors of package incident must know of the node.
	Incident incident.Options
	// Nvidia are the options of the decoder of the NVIDIA drivers' lines.
	Nvidia nvidia.Options
}

// Pipeline runs all detectors over records: the rules, the incidents of several lines,
// the decoder of what the NVIDIA drivers say, and Neuron's. It is itself a Detector,
// for one goroutine at a time.
//
// What user space wrote to the kernel's log goes through detectors of its own, so that
// it cannot complete, end or hide what the kernel says; its findings are at most
// Warnings and clear nothing.
type Pipeline struct {
	trust  bool
	kernel *lane
	// user is made when the first record of user space arrives: most nodes have none.
	user    *lane
	newUser func() *lane
	clock   time.Time
}

// lane is one set of detectors.
type lane struct {
	detectors []Detector
	user      bool
}

// New makes a pipeline. It fails when a rule does: the error names each of them, and
// the sample by which it failed.
func New(o Options) (*Pipeline, error) {
	if o.Catalog == nil {
		o.Catalog = health.NewCatalog()
	}
	if o.Rules == nil {
		rules, err := rule.Embedded()
		if err != nil {
			return nil, err
		}
		o.Rules = rules
	}
	engine, err := rule.New(o.Rules, o.Catalog)
	if err != nil {
		return nil, err
	}
	return &Pipeline{
		trust:  o.TrustUserspace,
		kernel: newLane(engine, o, false),
		newUser: func() *lane {
			o.Nvidia.Suspects = nil
			return newLane(engine.Clone(), o, true)
		},
	}, nil
}

func newLane(engine *rule.Engine, o Options, user bool) *lane {
	return &lane{user: user, detectors: []Detector{
		engine,
		newGate(incident.All(o.Incident)),
		nvidia.NewDetector(o.Nvidia),
		&neuron.Detector{},
	}}
}

// Detect implements Detector.
func (p *Pipeline) Detect(r host.Record) []health.Finding {
	r, l := p.route(r)
	if p.clock.IsZero() && Clock(r).IsZero() {
		r.Monotonic = 1 // a text without any times: all of it happened at one instant
	}
	out := p.advance(Clock(r))
	for _, d := range l.detectors {
		for _, f := range d.Detect(r) {
			out = append(out, l.complete(f, &r))
		}
	}
	return out
}

// Now is the time of the last record that had one, by Clock; the Unix epoch before.
func (p *Pipeline) Now() time.Time {
	if p.clock.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return p.clock
}

// route chooses the lane of a record and strips what tools put before the kernel's
// words when they write them to the kernel's log.
func (p *Pipeline) route(r host.Record) (host.Record, *lane) {
	if r.Source == host.SourceFile && r.Identifier == "" {
		return logtext.Dress(r), p.kernel
	}
	if r.Source == host.SourceKmsg && !r.Kernel {
		r.Message = strings.TrimPrefix(r.Message, "kernel: ")
		if !p.trust {
			if p.user == nil {
				p.user = p.newUser()
			}
			return r, p.user
		}
		r.Kernel = true
	}
	return r, p.kernel
}

// advance moves the clock of the records on, and returns what has become due.
func (p *Pipeline) advance(now time.Time) []health.Finding {
	if now.IsZero() {
		now = p.clock // it happened when the record before it did
	}
	if now.IsZero() {
		return nil
	}
	back := now.Before(p.clock.Add(-time.Minute))
	p.clock = now
	if back {
		// The clock was set back. What waits for a time that is now far away has
		// waited long enough.
		return p.Flush(now.Add(100 * 365 * 24 * time.Hour))
	}
	if due := p.Due(); due.IsZero() || now.Before(due) {
		return nil
	}
	return p.Flush(now)
}

// Due implements Detector.
func (p *Pipeline) Due() time.Time {
	var due time.Time
	for _, l := range p.lanes() {
		for _, d := range l.detectors {
			due = earlier(due, d.Due())
		}
	}
	return due
}

// Flush implements Detector.
func (p *Pipeline) Flush(now time.Time) []health.Finding {
	var out []health.Finding
	for _, l := range p.lanes() {
		for _, d := range l.detectors {
			for _, f := range d.Flush(now) {
				out = append(out, l.complete(f, nil))
			}
		}
	}
	return out
}

func (p *Pipeline) lanes() []*lane {
	if p.user == nil {
		return []*lane{p.kernel}
	}
	return []*lane{p.kernel, p.user}
}
