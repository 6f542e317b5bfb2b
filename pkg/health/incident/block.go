package incident

import (
	"regexp"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// block reads errors of block devices (block/blk-core.c, fs/buffer.c, fs/ext4/page-io.c).
// A request that failed is told by the block layer, with a sector; what the page cache
// and ext4 say of the data it carried is its consequence. When they complain and the
// block layer does not, no request was ever made: the device is gone, a volume that was
// detached while in use.
type block struct {
	holder
	clock
	// failed is when the block layer last told of an error, on any device: volumes
	// of the device mapper have other names than the disks below them.
	failed time.Time
	// beyond says that the line before was the first half of an access beyond the end
	// of a device, and at when.
	beyond time.Time
}

const (
	// consequenceTime is how long after an error its consequences are told.
	consequenceTime = 5 * time.Second
	// blockWait is how long a consequence waits for its cause.
	blockWait = 250 * time.Millisecond
)

var (
	// Until 3.18 end_request, then blk_update_request, for some versions
	// print_req_error, and since 5.16 without a prefix.
	blockError  = regexp.MustCompile(`^(?:(?:end_request|blk_update_request|print_req_error|blk_print_req_error): )?(?P<status>[A-Za-z/][A-Za-z/ ]{0,40}?) error, dev (?P<device>[^,\s]+), sector (?P<sector>\d+)`)
	blockBuffer = regexp.MustCompile(`^(?:Buffer I/O error on (?:device|dev) (?P<device>[^,\s]+), logical block (?P<block>\d+)(?P<lost>,? lost (?:async |sync )?page write)?|(?P<old>lost page write due to I/O error on (?P<device2>\S+)))`)
	blockExt    = regexp.MustCompile(`(?:^|\s)EXT4-fs warning \(device (?P<device>[^)\s]+)\): ext4_end_bio:\d+: I/O error (?P<errno>-?\d+) writing to inode (?P<inode>\d+)`)
	blockBeyond = regexp.MustCompile(`^(?:.{1,40}: )?attempt to access beyond end of device\b`)
	blockLimit  = regexp.MustCompile(`(?:^|\n)\s*(?P<device>[^\s:]+): rw=\d+, (?:want|sector)=\d+.*\blimit=(?P<limit>\d+)`)
	blockDead   = regexp.MustCompile(`^sd (?P<address>\S+): (?:\[(?P<device>\w+)\] )?[Rr]ejecting I/O to (?:dead|offline) device`)
	noFault     = regexp.MustCompile(`^(?:fd|sr|loop|zram)\d`)
	partition   = regexp.MustCompile(`^((?:nvme\d+(?:c\d+)?n\d+|mmcblk\d+|md\d+|nbd\d+))p\d+$|^((?:sd|vd|xvd|hd)[a-z]+)\d+$`)
)

func newBlock() *block { return &block{} }

func (*block) Literals() []string {
	return []string{" error, dev ", "Buffer I/O error on ", "lost page write due to", "ext4_end_bio", "beyond end of device", "limit=", "ejecting I/O to "}
}

func (*block) Sources() []host.Source { return kernelLog }

func (d *block) Detect(r host.Record) []health.Finding {
	now := d.now(r)
	if g := groups(blockError, r.Message); g != nil {
		return d.requestFailed(r, now, g)
	}
	if blockBeyond.MatchString(r.Message) {
		d.beyond = now
	}
	if g := groups(blockLimit, r.Message); g != nil && now.Sub(d.beyond) <= blockTime {
		d.beyond = time.Time{}
		if g["limit"] != "0" {
			return nil
		}
		return []health.Finding{d.detached(r, g["device"], fieldsOf(g, "limit"))}
	}
	if g := groups(blockDead, r.Message); g != nil {
		device := g["device"]
		if device == "" {
			device = g["address"]
		}
		return []health.Finding{d.detached(r, device, fieldsOf(g))}
	}
	if g := groups(blockBuffer, r.Message); g != nil {
		device := g["device"] + g["device2"]
		if noFault.MatchString(device) {
			return nil
		}
		return d.consequence(r, now, "buffer "+device, device, "BlockDeviceIOError", "A read or write of "+disk(device)+" failed", map[string]any{"device": clean(device)})
	}
	if g := groups(blockExt, r.Message); g != nil {
		device := g["device"]
		return d.consequence(r, now, "ext4 "+device, device, "FilesystemError", "The filesystem on "+device+" could not write a file", fieldsOf(g, "inode", "errno"))
	}
	return nil
}

func (d *block) requestFailed(r host.Record, now time.Time, g map[string]string) []health.Finding {
	device := g["device"]
	status := strings.TrimSpace(g["status"])
	// Nothing failed: the device cannot do what was tried, or was asked not to wait.
	if status == "operation not supported" || status == "nonblocking retry" || strings.HasPrefix(device, "fd") {
		return nil
	}
	d.failed = now
	d.items = nil
	fields := fieldsOf(g, "sector")
	fields["status"] = status
	severity := health.Warning
	if noFault.MatchString(device) {
		severity = health.Info // an image or a disc that ends early
	}
	return []health.Finding{finding(r, health.StorageReady, severity, "BlockDeviceIOError", clean(disk(device)),
		"A read or write of "+clean(disk(device))+" failed ("+status+")", fields)}
}

// consequence holds back what may follow from an error of the block layer. When both
// the page cache and ext4 complain of a device and the block layer is silent, the
// device is gone.
func (d *block) consequence(r host.Record, now time.Time, key, device, reason, message string, fields map[string]any) []health.Finding {
	if !d.failed.IsZero() && now.Sub(d.failed) <= consequenceTime && !now.Before(d.failed) {
		return nil
	}
	d.hold(key, now.Add(blockWait), finding(r, health.StorageReady, health.Warning, reason, clean(disk(device)), message, fields))
	if d.get("buffer "+device) != nil && d.get("ext4 "+device) != nil {
		return []health.Finding{d.detached(r, device, map[string]any{"device": clean(device)})}
	}
	return nil
}

// detached makes the finding of a device that is gone, and takes back its consequences.
func (d *block) detached(r host.Record, device string, fields map[string]any) health.Finding {
	d.take("buffer " + device)
	d.take("ext4 " + device)
	if fields["device"] == nil {
		fields["device"] = clean(device)
	}
	return finding(r, health.StorageReady, health.Warning, "VolumeDetachedInUse", clean(disk(device)),
		"The volume "+clean(disk(device))+" was removed while it was in use", fields)
}

// disk returns the disk that a partition is on.
func disk(device string) string {
	if m := partition.FindStringSubmatch(device); m != nil {
		return m[1] + m[2]
	}
	return device
}
