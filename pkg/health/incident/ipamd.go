package incident

import (
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// ipamd finds that the IPAM daemon of the VPC CNI cannot reach the API server. At boot
// it often cannot for a moment: only tries that all failed, over minutes, count.
type ipamd struct {
	nothing
	clock
	first, last time.Time
	failures    int
}

const (
	// ipamdFor is how long it must have failed, ipamdTries how often.
	ipamdFor   = 5 * time.Minute
	ipamdTries = 3
	// ipamdGap is the longest time between two failures that belong together: the
	// daemon tries every few seconds.
	ipamdGap = 15 * time.Minute
)

const ipamdLog = "/var/log/aws-routed-eni/ipamd.log"

var (
	ipamdFailed = []string{"Unable to reach API Server", "Failed to check API server connectivity"}
	ipamdWorks  = []string{"Successful communication with the Cluster", "API server connectivity established"}
)

func newIPAMD() *ipamd { return &ipamd{} }

func (*ipamd) Literals() []string     { return append(append([]string{}, ipamdFailed...), ipamdWorks...) }
func (*ipamd) Sources() []host.Source { return []host.Source{host.SourceFile} }

func (d *ipamd) Detect(r host.Record) []health.Finding {
	if !ofFile(r, ipamdLog) {
		return nil
	}
	now := d.now(r)
	if containsAny(r.Message, ipamdWorks) {
		d.failures = 0
		return nil
	}
	if !containsAny(r.Message, ipamdFailed) {
		return nil
	}
	if d.failures == 0 || now.Before(d.last) || now.Sub(d.last) > ipamdGap {
		d.first, d.failures = now, 0
	}
	d.last = now
	d.failures++
	if d.failures < ipamdTries || now.Sub(d.first) < ipamdFor {
		return nil
	}
	return []health.Finding{finding(r, health.NetworkingReady, health.Fatal, "IPAMDNotReady", "",
		"The IPAM daemon cannot reach the API server: pods get no addresses", nil)}
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
