// Package neuron finds the faults of AWS Neuron devices (Inferentia, Trainium) that
// their driver and runtime print to the kernel's log.
package neuron

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// A hardware error is one line of words KEY=VALUE:
// "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-… hostname=… nd-id=0 nc-id=0
// serial-num=… action=TERMINATE_INSTANCE" (Neuron documentation, "Troubleshooting
// the Neuron runtime"). The runtime prints it through the driver, so it is a record
// of the kernel's.
var (
	errorRE  = regexp.MustCompile(`(?:^|\s)NEURON_HW_ERR=([A-Z_]+)(?:\s|$)`)
	deviceRE = regexp.MustCompile(`\bnd-id=(\d{1,4})\b`)
	wordRE   = regexp.MustCompile(`(?:^|\s)(nc-id|serial-num|action)=(\S{1,64})`)
	namedRE  = regexp.MustCompile(`\bneuron(\d{1,4}):`)
)

// Detector finds hardware errors of Neuron devices. It implements detect.Detector
// and holds nothing back.
type Detector struct{}

// reason returns the reason code of a kind of error.
func reason(kind string) (code, words string, ok bool) {
	switch kind {
	case "DMA_ERROR":
		return "NeuronDMAError", "DMA error", true
	case "HBM_UNCORRECTABLE_ERROR":
		return "NeuronHBMUncorrectableError", "uncorrectable error in its memory (HBM)", true
	case "NC_UNCORRECTABLE_ERROR":
		return "NeuronNCUncorrectableError", "uncorrectable error in a NeuronCore", true
	case "SRAM_UNCORRECTABLE_ERROR":
		return "NeuronSRAMUncorrectableError", "uncorrectable error in its SRAM", true
	}
	return "", "", false
}

// Detect implements detect.Detector.
func (d *Detector) Detect(r host.Record) []health.Finding {
	if !r.Kernel && r.Source != host.SourceKmsg || !strings.Contains(r.Message, "NEURON_HW_ERR=") {
		return nil
	}
	m := errorRE.FindStringSubmatch(r.Message)
	if m == nil {
		return nil
	}
	code, words, ok := reason(m[1])
	if !ok {
		return nil
	}
	f := health.Finding{
		Reason: code, Severity: health.Fatal, Condition: health.AcceleratedHardwareReady,
		Fields:   map[string]any{"neuron_error": m[1]},
		Evidence: r.Message, At: r.At, Boot: r.Boot, Origin: health.OriginKernel, Position: r.Position,
	}
	device := deviceRE.FindStringSubmatch(r.Message)
	if device == nil {
		device = namedRE.FindStringSubmatch(r.Message)
	}
	f.Message = "Neuron device: " + words
	if device != nil {
		f.Subject = "neuron" + device[1]
		f.Fields["device"], _ = strconv.ParseInt(device[1], 10, 64)
		f.Message = fmt.Sprintf("Neuron device %s: %s", device[1], words)
	}
	for _, w := range wordRE.FindAllStringSubmatch(r.Message, -1) {
		f.Fields[fieldName(w[1])] = value(w[2])
	}
	if !r.Kernel {
		f.Origin = health.OriginUserspace
		f.Fields["origin"], f.Fields["facility"] = string(health.OriginUserspace), int64(r.Facility)
		f.Severity = health.Warning
	}
	return []health.Finding{f}
}

func fieldName(key string) string {
	switch key {
	case "nc-id":
		return "core"
	case "serial-num":
		return "serial"
	}
	return key
}

// value is a number when the text is a decimal one. A serial number is mostly
// hexadecimal and stays text.
func value(s string) any {
	if n, err := strconv.ParseInt(s, 10, 32); err == nil {
		return n
	}
	return s
}

// Due implements detect.Detector.
func (d *Detector) Due() time.Time { return time.Time{} }

// Flush implements detect.Detector.
func (d *Detector) Flush(time.Time) []health.Finding { return nil }
