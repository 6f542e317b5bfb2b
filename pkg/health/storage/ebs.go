package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

const (
	// ebsModel is the model of EBS volumes; instance store has another and no such page.
	ebsModel = "Amazon Elastic Block Store"
	// ebsLimit is how long a volume may be held back in ten minutes.
	ebsLimit  = 50 * time.Second
	ebsWindow = 10 * time.Minute
)

// ebs finds EBS volumes that ask for more than they, or the instance, may have. Each
// volume counts for how long it was held back, in its NVMe log page 0xD0 (EBS User
// Guide, "NVMe detailed performance statistics").
type ebs struct {
	check.Info
	opts Options
	last map[string]ebsSample
	read func(h *host.Host, device string) ([]byte, error)
}

// ebsCounters are microseconds since the volume was attached.
type ebsCounters struct {
	volumeIOPS, volumeThroughput, instanceIOPS, instanceThroughput uint64
}

type ebsSample struct {
	ebsCounters
	at time.Time
}

func newEBS(o Options) *ebs {
	return &ebs{
		Info: info("ebs", ebsWindow, "EBSVolumeIOPSExceeded", "EBSVolumeThroughputExceeded", "EBSInstanceIOPSExceeded", "EBSInstanceThroughputExceeded"),
		opts: o, last: map[string]ebsSample{}, read: readLogPage,
	}
}

// Run implements check.Check.
func (c *ebs) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	dirs, err := h.Glob("/sys/class/nvme/nvme*")
	if err != nil {
		return nil, err
	}
	now := map[string]ebsSample{}
	var errs []error
	for _, dir := range dirs {
		if model, err := h.ReadString(dir + "/model"); err != nil || model != ebsModel {
			continue
		}
		serial, err := h.ReadString(dir + "/serial")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		page, err := c.read(h, "/dev/"+path.Base(dir))
		if errors.Is(err, errNoPage) {
			continue
		}
		if err == nil {
			var counters ebsCounters
			counters, err = parseLogPage(page)
			now[volumeID(serial)] = ebsSample{counters, time.Now()}
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if len(now) == 0 {
		c.last = now
		return nil, check.ErrNoData
	}
	fs := checkEBS(c.opts, c.last, now)
	c.last = now
	return fs, nil
}

// volumeID writes the serial number as the API does: vol0abc as vol-0abc.
func volumeID(serial string) string {
	if id, ok := strings.CutPrefix(serial, "vol"); ok && !strings.HasPrefix(id, "-") {
		return "vol-" + id
	}
	return serial
}

// checkEBS compares with the last sample. The first of a volume is a baseline, and so
// is one after any counter fell: the volume was attached anew.
func checkEBS(o Options, last, now map[string]ebsSample) []health.Finding {
	var out []health.Finding
	for volume, n := range now {
		l, ok := last[volume]
		window := n.at.Sub(l.at)
		if !ok || window <= 0 || n.volumeIOPS < l.volumeIOPS || n.volumeThroughput < l.volumeThroughput ||
			n.instanceIOPS < l.instanceIOPS || n.instanceThroughput < l.instanceThroughput {
			continue
		}
		for _, r := range []struct {
			reason, who, what string
			delta             uint64
		}{
			{"EBSVolumeIOPSExceeded", "the volume", "operations a second", n.volumeIOPS - l.volumeIOPS},
			{"EBSVolumeThroughputExceeded", "the volume", "throughput", n.volumeThroughput - l.volumeThroughput},
			{"EBSInstanceIOPSExceeded", "the instance", "operations a second", n.instanceIOPS - l.instanceIOPS},
			{"EBSInstanceThroughputExceeded", "the instance", "throughput", n.instanceThroughput - l.instanceThroughput},
		} {
			limit := uint64(float64(ebsLimit.Microseconds()) * float64(window) / float64(ebsWindow))
			if r.delta <= limit {
				continue
			}
			f := check.Finding(o.Catalog, r.reason, volume, fmt.Sprintf("%s was held back for more than %s in 10 minutes: %s allows no more %s.", volume, ebsLimit, r.who, r.what))
			f.Evidence = fmt.Sprintf("held back for %d ms of %d ms", r.delta/1000, window.Milliseconds())
			f.Fields = map[string]any{"volume": volume, "delta_us": int64(r.delta), "window_s": int64(window.Round(time.Second) / time.Second)}
			out = append(out, f)
		}
	}
	return out
}

// The log page, and the NVMe admin command that reads it (NVM Express Base
// Specification, "Get Log Page"; include/uapi/linux/nvme_ioctl.h).
const (
	ebsPage      = 0xD0
	ebsPageSize  = 4096
	ebsMagic     = 0x3C23B510
	getLogPage   = 0x02
	nvmeAdminCmd = 0xC0484E41 // _IOWR('N', 0x41, struct nvme_admin_cmd)
	nvmeTimeout  = 5000       // ms
)

// errNoPage says that the volume does not have the page: it is attached by an older
// generation of instances.
var errNoPage = errors.New("no EBS log page")

// parseLogPage reads the counters at offset 56.
func parseLogPage(b []byte) (ebsCounters, error) {
	if len(b) < 88 {
		return ebsCounters{}, fmt.Errorf("EBS log page: %d bytes", len(b))
	}
	if magic := binary.LittleEndian.Uint32(b); magic != ebsMagic {
		return ebsCounters{}, fmt.Errorf("EBS log page: magic number %#x", magic)
	}
	n := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	return ebsCounters{volumeIOPS: n(56), volumeThroughput: n(64), instanceIOPS: n(72), instanceThroughput: n(80)}, nil
}

// nvmeCommand is struct nvme_passthru_cmd.
type nvmeCommand struct {
	opcode, flags                        uint8
	_                                    uint16
	nsid, cdw2, cdw3                     uint32
	metadata, addr                       uint64
	metadataLen, dataLen                 uint32
	cdw10, cdw11, cdw12, cdw13, cdw14, _ uint32
	timeout, result                      uint32
}

func readLogPage(h *host.Host, device string) ([]byte, error) {
	f, err := h.Open(device)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	page := make([]byte, ebsPageSize)
	var pin runtime.Pinner
	pin.Pin(&page[0])
	defer pin.Unpin()
	cmd := nvmeCommand{
		opcode: getLogPage, nsid: 1, addr: uint64(uintptr(unsafe.Pointer(&page[0]))), dataLen: ebsPageSize,
		cdw10: ebsPage | (ebsPageSize/4-1)<<16, timeout: nvmeTimeout,
	}
	status, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), nvmeAdminCmd, uintptr(unsafe.Pointer(&cmd)))
	switch {
	case errno != 0:
		return nil, fmt.Errorf("%s: read the EBS log page: %w", device, errno)
	case status&0x7ff == 0x109 || status&0x7ff == 0x002: // invalid log page, invalid field
		return nil, errNoPage
	case status != 0:
		return nil, fmt.Errorf("%s: read the EBS log page: NVMe status %#x", device, status)
	}
	return page, nil
}
