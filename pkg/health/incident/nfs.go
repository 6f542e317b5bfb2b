package incident

import (
	"regexp"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// nfs finds NFS servers that do not answer (net/sunrpc/clnt.c) and that are not back
// soon: one that answers again within nfsGrace is history.
type nfs struct {
	holder
	clock
}

const nfsGrace = 30 * time.Second

var (
	nfsDown = regexp.MustCompile(`^(?:nfs|lockd|NFS|RPC): server (?P<server>\S+) not responding, (?P<how>still trying|timed out)`)
	nfsBack = regexp.MustCompile(`^(?:nfs|lockd|NFS|RPC): server (?P<server>\S+) OK`)
)

func newNFS() *nfs { return &nfs{} }

func (*nfs) Literals() []string     { return []string{": server "} }
func (*nfs) Sources() []host.Source { return kernelLog }

func (d *nfs) Detect(r host.Record) []health.Finding {
	now := d.now(r)
	if g := groups(nfsDown, r.Message); g != nil {
		server := clean(g["server"])
		d.hold(server, now.Add(nfsGrace), finding(r, health.StorageReady, health.Warning, "NFSServerNotResponding", server,
			"The NFS server "+server+" does not answer: what uses its files hangs", fieldsOf(g)))
		return nil
	}
	if g := groups(nfsBack, r.Message); g != nil {
		if it := d.take(clean(g["server"])); it != nil {
			it.f.Severity = health.Info
			it.f.Message = "The NFS server " + it.f.Subject + " did not answer for a moment"
			it.f.Fields["recovered"] = true
			return []health.Finding{it.f}
		}
	}
	return nil
}
