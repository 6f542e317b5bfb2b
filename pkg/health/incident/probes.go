package incident

import (
	"regexp"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// probes finds nodes on which probes fail faster than a pod or two that is sick would
// explain: more than probeBurst at once and then one a second.
type probes struct {
	nothing
	clock
	buckets map[string]*probeBucket // by kind
}

type probeBucket struct {
	tokens float64
	at     time.Time
}

const (
	probeBurst     = 5.0
	probePerSecond = 1.0
)

var (
	// pkg/kubelet/prober: text before 1.19 or so, structured since.
	probeOld = regexp.MustCompile(`\b(?P<kind>Liveness|Readiness) probe (?:for "(?P<pod>[^_"]+)_(?P<namespace>[^("]+)\([^"]*\):(?P<container>[^"]+)" )?(?:failed|errored)\b`)
	probeNew = regexp.MustCompile(`"Probe (?:failed|errored)".*? probeType="(?P<kind>Liveness|Readiness)"(?:.*? pod="(?P<namespace>[^/"]+)/(?P<pod>[^"]+)")?(?:.*? containerName="(?P<container>[^"]+)")?`)
)

func newProbes() *probes { return &probes{buckets: map[string]*probeBucket{}} }

func (*probes) Literals() []string {
	return []string{"Liveness probe ", "Readiness probe ", `"Probe failed"`, `"Probe errored"`}
}

func (*probes) Sources() []host.Source { return []host.Source{host.SourceJournal} }

func (d *probes) Detect(r host.Record) []health.Finding {
	if !ofUnit(r, kubeletUnits...) {
		return nil
	}
	now := d.now(r)
	g := groups(probeNew, r.Message)
	if g == nil {
		g = groups(probeOld, r.Message)
	}
	if g == nil || d.take(g["kind"], now) {
		return nil
	}
	kind := g["kind"]
	delete(g, "kind")
	return []health.Finding{finding(r, health.ContainerRuntimeReady, health.Warning, kind+"ProbeFailures", "",
		kind+" probes fail all over the node", fieldsOf(g))}
}

// take takes a token, and says whether there was one.
func (d *probes) take(kind string, now time.Time) bool {
	b := d.buckets[kind]
	if b == nil {
		b = &probeBucket{tokens: probeBurst, at: now}
		d.buckets[kind] = b
	}
	if since := now.Sub(b.at); since > 0 {
		b.tokens = min(probeBurst, b.tokens+since.Seconds()*probePerSecond)
	}
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
