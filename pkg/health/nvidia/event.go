package nvidia

import (
	"fmt"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// kind is a kind of device.
type kind string

const (
	gpu      kind = "GPU"
	nvswitch kind = "NVSwitch"
)

// event is what one line says about one device.
type event struct {
	kind kind
	// pci is the device's canonical address.
	pci string
	// code is an Xid, or an SXid of an NVSwitch.
	code     int
	reason   string
	severity health.Severity
	// weight ranks events of the same severity: the highest leads an incident.
	weight  int
	name    string
	action  string
	verdict Verdict
	fields  map[string]any
	// recovery is set for Xid 154.
	recovery *recoveryChange
	record   host.Record
}

// pid returns the process of the event, 0 when unknown.
func (e *event) pid() int64 {
	pid, _ := e.fields["pid"].(int64)
	return pid
}

// worse says that e rather than o is what an incident is about.
func (e *event) worse(o *event) bool {
	if a, b := e.severity.Rank(), o.severity.Rank(); a != b {
		return a > b
	}
	return e.weight > o.weight
}

// symptoms are codes that follow from something else when anything else is there:
// channels torn down, a firmware that no longer answers, details of another code.
func symptom(code int) bool {
	switch code {
	case 43, 45, 109, 119, 120, 154, 171, 172:
		return true
	}
	return false
}

// applicationClass are codes that a program can cause by itself.
func applicationClass(code int) bool {
	switch code {
	case 13, 31, 43, 45, 94:
		return true
	}
	return false
}

// xidEvent judges an Xid.
func (d *Detector) xidEvent(x xidLine, r host.Record) *event {
	info, known := d.tables.xids[x.code]
	e := &event{kind: gpu, pci: CanonicalPCI(x.pci), code: x.code, severity: health.Warning, weight: 2 * actionWeight("RESTART_APP"), record: r, fields: x.fields()}
	if known {
		e.severity, e.action, e.name = info.severity, info.action, info.name
		e.weight = 2 * actionWeight(info.action)
		if info.name == "Unused" {
			e.name = info.mnemonic
		}
	}
	if symptom(x.code) {
		e.weight--
	}
	addDetails(e.fields, x.code, x.text)
	switch {
	case x.code == 154:
		d.judgeRecovery(e, x.text)
	case x.code >= 144 && x.code <= 150:
		if d.tables.nvlink5Verdict(e.fields, x.code, x.text, d.driver) {
			e.severity = health.Fatal
		}
		if action, ok := e.fields["action"].(string); ok {
			e.action = action
		}
	case x.code == 74 && e.fields["ignorable_bits_only"] == true:
		e.severity, e.action = health.Warning, "IGNORE"
	}
	e.verdict = VerdictWarn
	if e.severity == health.Fatal {
		e.verdict = xidVerdict(x.code, e.action)
	}
	if e.recovery != nil {
		e.verdict = e.recovery.to.Verdict()
	}
	if e.reason == "" {
		e.reason = fmt.Sprintf("NvidiaXID%d%s", x.code, suffix(e.severity))
	}
	return e
}

// judgeRecovery judges an Xid 154, whose text says what the driver asks for.
func (d *Detector) judgeRecovery(e *event, text string) {
	e.weight = 1
	c, ok := parseRecovery(text)
	if !ok {
		e.fields["parse_error"] = true
		return
	}
	e.fields["from"], e.fields["to"] = int64(c.from), int64(c.to)
	e.recovery = &c
	switch {
	case c.to == RecoveryNone:
		e.severity = health.Info
		e.fields["recovered"] = true
	case c.to.known():
		e.reason, e.severity, e.action = "NvidiaRecoveryAction", c.to.Severity(), c.to.String()
	}
}

func suffix(s health.Severity) string {
	if s == health.Fatal {
		return "Error"
	}
	return "Warning"
}
