package incident

import (
	"regexp"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// nvme reads what the NVMe driver says of controllers (drivers/nvme/host/pci.c,
// core.c). A command that takes too long is aborted, then its controller is reset; that
// it came back is told for the history.
type nvme struct {
	nothing
	clock
	resets map[string]reset // by controller
}

// reset is a reset that is going on.
type reset struct {
	at     time.Time
	fields map[string]any
}

// resetTime is how long a reset may take.
const resetTime = 2 * time.Minute

var (
	nvmeTimeout = regexp.MustCompile(`^nvme (?P<controller>\S+): I/O (?:tag )?(?P<tag>\d+) (?:\([^)]*\) )*(?:type \S+ )?(?:opcode \S+ (?:\([^)]*\) )?)?QID (?P<qid>\d+) timeout(?:, (?P<action>aborting|reset controller|disable controller|completion polled))?`)
	nvmeAdmin   = regexp.MustCompile(`^nvme (?P<controller>\S+): (?P<what>Fw activation timeout, reset controller|Abort status: 0x[1-9a-f])`)
	nvmeBack    = regexp.MustCompile(`^nvme (?P<controller>\S+): (?:\d+/\d+/\d+ default/read/poll queues|\d+ default/read/poll queues)`)
	nvmeDown    = regexp.MustCompile(`^nvme (?P<controller>\S+): (?P<what>[Rr]emoving after probe failure|controller is down; will reset|[Dd]isabling device after reset failure|Device not ready; aborting (?:reset|initialisation)|failed to mark controller (?:live|CONNECTING))(?:.*?status: (?P<status>-?\d+)|: CSTS=(?P<csts>\w+)|: (?P<code>-\d+))?`)
)

func newNVMe() *nvme { return &nvme{resets: map[string]reset{}} }

func (*nvme) Literals() []string     { return []string{"nvme nvme", "nvme 0"} }
func (*nvme) Sources() []host.Source { return kernelLog }

func (d *nvme) Detect(r host.Record) []health.Finding {
	now := d.now(r)
	if g := groups(nvmeTimeout, r.Message); g != nil {
		fields := fieldsOf(g, "tag", "qid")
		if g["action"] == "reset controller" || g["action"] == "disable controller" {
			fields["reset"] = true
			if len(d.resets) >= maxHeld {
				clear(d.resets)
			}
			d.resets[g["controller"]] = reset{now, fields}
		}
		return []health.Finding{finding(r, health.StorageReady, health.Warning, "NVMeTimeout", clean(g["controller"]),
			"A command to NVMe controller "+clean(g["controller"])+" took too long", fields)}
	}
	if g := groups(nvmeDown, r.Message); g != nil {
		delete(d.resets, g["controller"])
		return []health.Finding{finding(r, health.StorageReady, health.Warning, "NVMeControllerDown", clean(g["controller"]),
			"The NVMe controller "+clean(g["controller"])+" does not work any more", fieldsOf(g))}
	}
	if g := groups(nvmeAdmin, r.Message); g != nil {
		return []health.Finding{finding(r, health.StorageReady, health.Warning, "NVMeTimeout", clean(g["controller"]),
			"The NVMe controller "+clean(g["controller"])+" does not answer in time", fieldsOf(g))}
	}
	g := groups(nvmeBack, r.Message)
	if g == nil {
		return nil
	}
	back, ok := d.resets[g["controller"]]
	delete(d.resets, g["controller"])
	if !ok || now.Sub(back.at) > resetTime {
		return nil
	}
	fields := map[string]any{"recovered": true}
	for k, v := range back.fields {
		fields[k] = v
	}
	return []health.Finding{finding(r, health.StorageReady, health.Info, "NVMeTimeout", clean(g["controller"]),
		"The NVMe controller "+clean(g["controller"])+" works again after a reset", fields)}
}
