package incident

import (
	"regexp"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// aer reads PCIe errors (drivers/pci/pcie/aer.c, dpc.c). Corrected ones are repaired
// by the link itself and can come every few seconds for ever: only many of one device
// within an hour are worth a Warning. Kernels of 2025 say "Correctable" and
// "Uncorrectable", older ones "Corrected" and "Uncorrected".
type aer struct {
	holder
	clock
	corrected map[string]*correctedCount
}

type correctedCount struct {
	since time.Time
	n     int64
	told  bool
}

const (
	// correctedMany in correctedWithin of one device are a Warning.
	correctedMany   = 100
	correctedWithin = time.Hour
	// recoveryTime is how long the kernel takes to say how recovery went.
	recoveryTime = 2 * time.Second
)

var (
	aerError    = regexp.MustCompile(`^(?P<driver>\S+) (?P<device>[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): (?:AER: )?PCIe Bus Error: severity=(?P<severity_text>(?:(?P<bad>Uncorrect)|Correct)(?:ed|able)(?: \((?:Non-Fatal|Fatal)\))?)(?:, type=(?P<type>[^,]+))?`)
	aerReceived = regexp.MustCompile(`^(?P<driver>\S+) (?P<port>[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): AER: (?:Multiple )?(?P<severity_text>(?:(?P<bad>Uncorrect)|Correct)(?:ed|able)(?: \((?:Non-Fatal|Fatal)\))?) error (?:message )?received(?::| from) (?:id=)?(?P<device>\S+)`)
	aerRecovery = regexp.MustCompile(`^\S+ (?P<device>[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): (?:AER: |PCIe Bus Error: )?[Dd]evice recovery (?P<how>failed|successful)`)
	aerDPC      = regexp.MustCompile(`^\S+ (?P<device>[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]): DPC: containment event`)
	pciAddress  = regexp.MustCompile(`^[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
)

func newAER() *aer { return &aer{corrected: map[string]*correctedCount{}} }

func (*aer) Literals() []string {
	return []string{"PCIe Bus Error", ": AER: ", "evice recovery ", ": DPC: containment"}
}

func (*aer) Sources() []host.Source { return kernelLog }

func (d *aer) Detect(r host.Record) []health.Finding {
	now := d.now(r)
	if g := groups(aerError, r.Message); g != nil {
		bad := g["bad"] != ""
		delete(g, "bad")
		fields := fieldsOf(g)
		if g["driver"] == "pcieport" {
			fields["port"] = fields["device"]
		}
		if bad {
			d.take("received") // said better now
			d.hold(g["device"], now.Add(recoveryTime), uncorrected(r, g["device"], fields))
			return nil
		}
		return d.correctedError(r, now, g["device"], fields)
	}
	if g := groups(aerReceived, r.Message); g != nil && g["bad"] != "" {
		delete(g, "bad")
		if !pciAddress.MatchString(g["device"]) {
			g["device"] = g["port"]
		}
		d.hold("received", now.Add(blockTime), uncorrected(r, g["device"], fieldsOf(g)))
		return nil
	}
	if g := groups(aerDPC, r.Message); g != nil {
		d.hold(g["device"], now.Add(recoveryTime), uncorrected(r, g["device"], fieldsOf(g)))
		return nil
	}
	if g := groups(aerRecovery, r.Message); g != nil {
		return d.recovery(g["device"], g["how"] == "failed")
	}
	return nil
}

func uncorrected(r host.Record, device string, fields map[string]any) health.Finding {
	return finding(r, health.KernelReady, health.Warning, "PCIeUncorrectedError", clean(device),
		"The PCIe device "+clean(device)+" had an error that its link could not correct", fields)
}

// recovery ends the wait for how recovery went. The kernel names the port at times,
// and the device that had the error at others.
func (d *aer) recovery(device string, failed bool) []health.Finding {
	it := d.take(device)
	if it == nil && len(d.items) > 0 {
		it = d.take(d.items[len(d.items)-1].key)
	}
	if it == nil {
		return nil
	}
	it.f.Fields["recovery_failed"] = failed
	return []health.Finding{it.f}
}

func (d *aer) correctedError(r host.Record, now time.Time, device string, fields map[string]any) []health.Finding {
	c := d.corrected[device]
	if c == nil || now.Sub(c.since) > correctedWithin || now.Before(c.since) {
		if len(d.corrected) >= maxHeld {
			clear(d.corrected)
		}
		c = &correctedCount{since: now}
		d.corrected[device] = c
	}
	c.n++
	severity, message := health.Info, "The PCIe device "+clean(device)+" had an error that its link corrected"
	if c.n >= correctedMany {
		if c.told {
			return nil
		}
		c.told = true
		severity, message = health.Warning, "The link of PCIe device "+clean(device)+" has to correct errors all the time"
		fields["count"] = c.n
	}
	return []health.Finding{finding(r, health.KernelReady, severity, "PCIeCorrectedError", clean(device), message, fields)}
}
