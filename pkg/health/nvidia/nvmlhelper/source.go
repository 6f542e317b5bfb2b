package nvmlhelper

import (
	"context"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// Source hands the events of NVML on as records, so that they take the way of the
// kernel's lines. It is a host.LogSource. It has no past and no checkpoint, and since
// whether NVML can be read is for the checks to say, it is never blind.
type Source struct {
	state  *host.SourceState
	events chan Event
}

// NewSource returns a source; its Push is what Options.OnEvent is for.
func NewSource() *Source {
	return &Source{state: host.NewSourceState("nvml"), events: make(chan Event, 256)}
}

// Push takes an event. It never blocks: what nobody takes in time is counted as lost.
func (s *Source) Push(e Event) {
	select {
	case s.events <- e:
	default:
		s.state.AddLost(1)
	}
}

// Name implements host.LogSource.
func (s *Source) Name() string { return s.state.Status().Name }

// Status implements host.LogSource.
func (s *Source) Status() host.SourceStatus { return s.state.Status() }

// State is for those that want to know of changes.
func (s *Source) State() *host.SourceState { return s.state }

// Run implements host.LogSource.
func (s *Source) Run(ctx context.Context, handle host.Handler) error {
	s.state.SetUp()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-s.events:
			for _, r := range e.records() {
				if err := handle(r); err != nil {
					return err
				}
				s.state.Saw(time.Now())
			}
		}
	}
}

// records are what an event is for the detectors of the log.
func (e Event) records() []host.Record {
	var out []host.Record
	if r, ok := nvidia.XidRecord(e.PCI, e.Xid, e.At); ok {
		out = append(out, r)
	}
	if e.DoubleBit {
		out = append(out, nvidia.MemoryErrorRecord(e.UUID, e.PCI, e.At))
	}
	return out
}
