package nvidia

import (
	"fmt"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// finding is what an incident has come to.
func (d *Detector) finding(in *incident) health.Finding {
	lead := in.lead
	f := health.Finding{
		Reason:    lead.reason,
		Severity:  lead.severity,
		Condition: health.AcceleratedHardwareReady,
		Subject:   d.subject(in.kind, in.pci, lead),
		Fields:    map[string]any{},
		Evidence:  lead.record.Message,
		At:        lead.record.At,
		Boot:      lead.record.Boot,
		Origin:    health.OriginKernel,
		Position:  lead.record.Position,
	}
	for k, v := range lead.fields {
		f.Fields[k] = v
	}
	d.addIncident(f.Fields, in)
	if in.kind == gpu && in.kernel {
		if id := d.gpus.Get(in.pci); id.UUID != "" {
			f.Fields["gpu_uuid"] = id.UUID
			if id.Serial != "" {
				f.Fields["serial"] = id.Serial
			}
		}
	}
	f.Message = in.message(f.Subject)
	if !in.kernel {
		f.Origin = health.OriginUserspace
		f.Fields["origin"], f.Fields["facility"] = string(health.OriginUserspace), int64(lead.record.Facility)
		if f.Severity == health.Fatal {
			f.Severity = health.Warning
		}
	}
	return f
}

// addIncident adds what the other lines of the incident say.
func (d *Detector) addIncident(f map[string]any, in *incident) {
	r := in.relations()
	set := func(name string, codes []int64) {
		if len(codes) > 0 {
			f[name] = codes
		}
	}
	if in.kind == nvswitch {
		set("related_sxids", r.related)
	} else {
		set("detail_xids", r.details)
		set("consequence_xids", r.consequences)
		set("related_xids", r.related)
		if len(in.events) > 1 {
			f["root_xid"] = int64(in.lead.code)
			if len(in.events) == 2 && in.recovery != nil && in.lead.recovery == nil {
				delete(f, "root_xid")
			}
		}
		if in.lead.recovery != nil && len(r.related) > 0 {
			f["root_xid"] = r.related[0]
		}
	}
	if r.relatedPID != 0 {
		f["related_pid"] = r.relatedPID
	}
	if r.preceding != nil {
		f["preceding_xid"] = int64(r.preceding.code)
		if pid := r.preceding.pid(); pid != 0 {
			f["preceding_pid"] = pid
		}
	}
	verdict := VerdictOK
	for _, e := range in.events {
		verdict = worseVerdict(verdict, e.verdict)
	}
	if in.recovery != nil {
		f["recovery_action"] = int64(in.recovery.to)
		if in.recovery.text != "" {
			f["recovery_text"] = in.recovery.text
		}
	}
	f["verdict"] = string(verdict)
	f["events"], f["lines"] = int64(1), in.lines
}

// subject names the device: its UUID and PCI address when the UUID is known.
func (d *Detector) subject(k kind, pci string, e *event) string {
	if k == nvswitch {
		return fmt.Sprintf("nvswitch%d (%s)", e.fields["nvswitch"], pci)
	}
	return Subject(d.gpus.Get(pci).UUID, pci)
}

// Subject is the subject of findings about a GPU: "GPU-… (0000:3b:00)", or the
// canonical PCI address alone while the UUID is unknown.
func Subject(uuid, pci string) string {
	if uuid == "" {
		return CanonicalPCI(pci)
	}
	return uuid + " (" + CanonicalPCI(pci) + ")"
}

// SplitSubject is the inverse of Subject; both are empty when it is not about a GPU.
func SplitSubject(subject string) (uuid, pci string) {
	if pciRE.MatchString(subject) {
		return "", subject
	}
	uuid, pci, ok := strings.Cut(strings.TrimSuffix(subject, ")"), " (")
	if !ok || !strings.HasPrefix(uuid, "GPU-") || !pciRE.MatchString(pci) {
		return "", ""
	}
	return uuid, pci
}

// message is one sentence, the same for each incident of its kind.
func (in *incident) message(subject string) string {
	lead := in.lead
	var b strings.Builder
	number := "Xid"
	if in.kind == nvswitch {
		number = "SXid"
	}
	switch {
	case lead.recovery != nil && lead.recovery.to == RecoveryNone:
		fmt.Fprintf(&b, "GPU %s: the driver needs no recovery action any more", subject)
		return b.String()
	case lead.recovery != nil:
		fmt.Fprintf(&b, "GPU %s: the driver asks to %s", subject, lead.recovery.to)
		return b.String()
	case in.kind == nvswitch:
		fmt.Fprintf(&b, "%s: %s %d", subject, number, lead.code)
	default:
		fmt.Fprintf(&b, "GPU %s: %s %d", subject, number, lead.code)
	}
	if lead.name != "" {
		b.WriteString(", " + lead.name)
	} else {
		b.WriteString(", not in NVIDIA's catalogue")
	}
	if in.recovery != nil && in.recovery.to != RecoveryNone {
		fmt.Fprintf(&b, "; the driver asks to %s", in.recovery.to)
	}
	return b.String()
}
