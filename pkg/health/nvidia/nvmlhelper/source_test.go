package nvmlhelper

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
)

var _ host.LogSource = (*Source)(nil)

func TestEventsBecomeRecords(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := NewSource()
	s.Push(Event{Xid: 79, PCI: "0000:01:00", At: at})
	s.Push(Event{Xid: 154, PCI: "0000:01:00", At: at})
	s.Push(Event{DoubleBit: true, UUID: "GPU-1", PCI: "0000:01:00", At: at})
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	err := s.Run(ctx, func(r host.Record) error {
		if !r.Kernel || !r.At.Equal(at) {
			t.Errorf("record %+v", r)
		}
		if got = append(got, r.Message); len(got) == 2 {
			cancel()
		}
		return nil
	})
	want := []string{"NVRM: Xid (PCI:0000:01:00): 79, told by NVML", "NVML: double-bit memory error on GPU GPU-1 (0000:01:00)"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestAFloodOfEventsIsCounted(t *testing.T) {
	s := NewSource()
	for range 1000 {
		s.Push(Event{Xid: 79})
	}
	if lost := s.Status().Lost; lost != 1000-256 {
		t.Errorf("%d lost", lost)
	}
}
