package neuron

import (
	"fmt"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

func TestHardwareErrors(t *testing.T) {
	catalog := health.NewCatalog()
	for kind, want := range map[string]string{
		"DMA_ERROR":                "NeuronDMAError",
		"HBM_UNCORRECTABLE_ERROR":  "NeuronHBMUncorrectableError",
		"NC_UNCORRECTABLE_ERROR":   "NeuronNCUncorrectableError",
		"SRAM_UNCORRECTABLE_ERROR": "NeuronSRAMUncorrectableError",
	} {
		line := fmt.Sprintf("[2025-01-02T03:04:05.678Z] NEURON_HW_ERR=%s instance-id=i-0592464924bd45322 hostname=node-a nd-id=3 nc-id=1 serial-num=19fcda00f5ff6eb9 action=TERMINATE_INSTANCE", kind)
		got := (&Detector{}).Detect(host.Record{Source: host.SourceKmsg, Kernel: true, Message: line})
		if len(got) != 1 || got[0].Reason != want || got[0].Severity != health.Fatal || got[0].Subject != "neuron3" {
			t.Fatalf("%q gives %+v", line, got)
		}
		if r, ok := catalog.Lookup(want); !ok || r.Severity != got[0].Severity || r.Condition != got[0].Condition {
			t.Errorf("%s is not so in the catalogue: %+v", want, r)
		}
		f := got[0].Fields
		if f["device"] != int64(3) || f["core"] != int64(1) || f["serial"] != "19fcda00f5ff6eb9" || f["action"] != "TERMINATE_INSTANCE" {
			t.Errorf("fields %v", f)
		}
		got = (&Detector{}).Detect(host.Record{Source: host.SourceKmsg, Facility: 1, Message: line})
		if len(got) != 1 || got[0].Severity != health.Warning || got[0].Origin != health.OriginUserspace {
			t.Errorf("from user space: %+v", got)
		}
		if got := (&Detector{}).Detect(host.Record{Source: host.SourceFile, Message: line}); len(got) > 0 {
			t.Errorf("from a file: %+v", got)
		}
	}
}

func TestOtherShapes(t *testing.T) {
	for line, subject := range map[string]string{
		"NEURON_HW_ERR=DMA_ERROR":                                  "",
		"neuron:neuron0: NEURON_HW_ERR=DMA_ERROR x":                "neuron0",
		"kernel: NEURON_HW_ERR=DMA_ERROR affecting neuron devices": "",
	} {
		got := (&Detector{}).Detect(host.Record{Kernel: true, Message: line})
		if len(got) != 1 || got[0].Subject != subject {
			t.Errorf("%q gives %+v, want subject %q", line, got, subject)
		}
	}
	for _, line := range []string{"NEURON_HW_ERR=", "NEURON_HW_ERR=SOMETHING_NEW nd-id=0", "XNEURON_HW_ERR=DMA_ERROR", "neuron: DMA_ERROR", "NEURON_HW_ERR=DMA_ERRORS"} {
		if got := (&Detector{}).Detect(host.Record{Kernel: true, Message: line}); len(got) > 0 {
			t.Errorf("%q gives %+v", line, got)
		}
	}
}
