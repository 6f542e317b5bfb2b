package gpustate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	s := State{GPUs: []GPU{
		{Index: 0, UUID: "GPU-0", PCI: "0000:53:00", Temperature: ptr(uint32(34)), ECC: &ECC{VolatileUncorrected: 1, AggregateUncorrected: 7},
			Rows: &Rows{Correctable: 1, Uncorrectable: 2}, Links: map[int]bool{0: true, 1: false, 2: true}},
		{Index: 1, UUID: "GPU-1", PCI: "0000:64:00", Rows: &Rows{Uncorrectable: 3, Pending: true}},
		{Index: 2, Rows: &Rows{Failure: true}},
		{Index: 3, Lost: true},
	}}
	got := Table(s, func(g GPU) (string, string) {
		if g.Lost {
			return "reboot", "NvidiaGPULost"
		}
		return "ok", ""
	})
	want := []Row{
		{"0", "GPU-0", "0000:53:00", "34 C", "1/7", "3", "2/3", "ok", "-"},
		{"1", "GPU-1", "0000:64:00", "-", "-", "3, pending", "-", "ok", "-"},
		{"2", "-", "-", "-", "-", "failed", "-", "ok", "-"},
		{"3", "-", "-", "-", "-", "-", "-", "reboot", "NvidiaGPULost"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
