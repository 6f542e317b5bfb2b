package incident

import (
	"regexp"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// filesystem reads what ext2-4, XFS, btrfs and FAT say (fs/*). An error often ends in
// a shutdown or in a filesystem that is read-only, which the kernel says in the same
// moment: that is then what is reported, once. XFS never becomes read-only. The words
// about a failed write of one file are read with the errors of block devices.
//
// A filesystem that is read-only or shut down goes on to report errors to all who use
// it, for days: until it is mounted again they tell nothing new.
type filesystem struct {
	holder
	clock
	critical func(device string) (critical, known bool)
	// down are the devices of filesystems that are read-only or shut down.
	down map[string]bool
}

// filesystemTime is how long an error waits for what becomes of the filesystem.
const filesystemTime = 250 * time.Millisecond

var (
	fsRemount  = regexp.MustCompile(`(?:^|\s)(?P<fs>EXT[234])-fs \((?P<device>[^)\s]+)\): (?:error: )?[Rr]emounting filesystem read-only`)
	fsExt      = regexp.MustCompile(`(?:^|\s)(?P<fs>EXT[234])-fs (?P<level>error|warning) \(device (?P<device>[^)\s]+)\)(?: in (?P<where>\w+))?:? ?(?P<detail>.*)`)
	fsExtOther = regexp.MustCompile(`^(?P<fs>EXT[234])-fs \((?P<device>[^)\s]+)\): (?P<detail>(?:I/O error while writing superblock|(?:delayed|previous) I/O error|(?:warning: )?mounting fs with errors|error count since last fsck).*)`)
	fsJournal  = regexp.MustCompile(`^(?:JBD2?: (?P<detail>Detected IO errors while flushing file data|I/O error detected when updating journal superblock|.*recovery failed)|(?P<abort>Aborting journal)) on (?:device )?(?P<device>\S+?)(?:-\d+)?[.\s]*$`)
	fsXFS      = regexp.MustCompile(`^(?:S?GI )?(?P<fs>XFS) \((?P<device>[^)\s]+)\): (?P<detail>.*)`)
	fsBtrfs    = regexp.MustCompile(`^(?P<fs>BTRFS):? (?P<level>error|critical|warning|info|alert|emerg)? ?\(device (?P<device>[^)\s:]+)(?::? state \w+)?\):? ?(?P<detail>.*)`)
	fsFAT      = regexp.MustCompile(`^(?P<fs>FAT)-fs \((?P<device>[^)\s]+)\): (?P<detail>error, .*|Filesystem has been set read-only)`)

	xfsCorrupt = regexp.MustCompile(`Corruption detected|[Mm]etadata (?:corruption|CRC error)|Internal error|Corruption warning|Corruption of|has LSN .* ahead|unmount and run xfs_repair`)
	xfsError   = regexp.MustCompile(`metadata I/O error|log I/O error|xfs_log_force: error|writeback error|[Ff]ailing async write|page discard|xlog_recover.*(?:failed|error)|[Ll]og recovery failed|I/O [Ee]rror [Dd]etected`)
	extCorrupt = regexp.MustCompile(`(?i)corrupt|checksum`)
	btrCorrupt = regexp.MustCompile(`(?i)corrupt (?:leaf|node)|csum failed|checksum (?:verify failed|error|mismatch)|parent transid verify failed|bad tree block|corruption`)
	btrError   = regexp.MustCompile(`errno=-\d+ (?:IO failure|Readonly|No space)?|bdev \S+ errs: |lost page write|unable to (?:read|find)|error writing|Transaction aborted`)
	extWrite   = regexp.MustCompile(`I/O error -?\d+ (?:writing|reading)`)

	fsMounts = regexp.MustCompile(`(?:EXT[234]-fs|XFS|BTRFS[a-z ]*) \((?:device )?(?P<device>[^)\s:]+)\):? (?i:mounted filesystem|mounting V\d|ending clean mount|re-mounted .*r/?w|first mount of|unmounting filesystem)`)

	// neverNeeded are devices that the node itself never needs: images, optical and
	// network block devices.
	neverNeeded = regexp.MustCompile(`^(?:loop|ram|zram|sr|fd|nbd|rbd|drbd)\d`)
)

func newFilesystem(o Options) *filesystem {
	return &filesystem{critical: o.Critical, down: map[string]bool{}}
}

func (*filesystem) Literals() []string {
	return []string{"EXT2-fs", "EXT3-fs", "EXT4-fs", "XFS (", "BTRFS", "FAT-fs", "JBD", "Aborting journal"}
}

func (*filesystem) Sources() []host.Source {
	return []host.Source{host.SourceKmsg, host.SourceFile}
}

func (d *filesystem) Detect(r host.Record) []health.Finding {
	if r.Source == host.SourceFile && !ofSystemLog(r) {
		return nil
	}
	now := d.now(r)
	g, reason := classifyFilesystem(r.Message)
	if reason == "" {
		if g = groups(fsMounts, r.Message); g != nil {
			delete(d.down, clean(g["device"]))
		}
		return nil
	}
	device := clean(g["device"])
	delete(g, "level")
	fields := fieldsOf(g)
	fields["fs"] = strings.ToLower(g["fs"])
	severity, message := d.verdict(reason, device, g["detail"])
	switch reason {
	case "FilesystemReadOnly", "FilesystemShutdown", "VolumeDetachedInUse":
		if len(d.down) >= maxHeld {
			clear(d.down)
		}
		d.down[device] = true
		if it := d.take(device); it != nil {
			fields["cause"] = it.f.Reason
			if it.f.Fields["detail"] != nil {
				fields["detail"] = it.f.Fields["detail"]
			}
		}
		return []health.Finding{finding(r, health.StorageReady, severity, reason, device, message, fields)}
	}
	if d.down[device] {
		return nil
	}
	it := d.hold(device, now.Add(filesystemTime), finding(r, health.StorageReady, severity, reason, device, message, fields))
	if reason == "FilesystemCorruption" && it.f.Reason == "FilesystemError" {
		it.f.Reason, it.f.Message = reason, message // the more exact word
	}
	return nil
}

func (d *filesystem) verdict(reason, device, detail string) (health.Severity, string) {
	bad := health.Fatal
	if neverNeeded.MatchString(device) {
		bad = health.Warning
	} else if d.critical != nil {
		if critical, known := d.critical(device); known && !critical {
			bad = health.Warning
		}
	}
	switch reason {
	case "FilesystemReadOnly":
		return bad, "The filesystem on " + device + " became read-only after an error"
	case "FilesystemShutdown":
		if strings.Contains(detail, "User initiated shutdown") {
			bad = health.Warning
		}
		return bad, "The filesystem on " + device + " shut itself down after an error"
	case "VolumeDetachedInUse":
		return health.Warning, "The volume " + device + " was removed while its filesystem was mounted"
	case "FilesystemCorruption":
		return health.Warning, "The filesystem on " + device + " is damaged"
	}
	return health.Warning, "The filesystem on " + device + " reported an error"
}

// classifyFilesystem returns the parts of a line and the reason it is worth, "" for
// none.
func classifyFilesystem(line string) (map[string]string, string) {
	if g := groups(fsRemount, line); g != nil {
		return g, "FilesystemReadOnly"
	}
	if g := groups(fsExt, line); g != nil {
		switch {
		case extWrite.MatchString(line):
			return nil, ""
		case extCorrupt.MatchString(g["detail"]):
			return g, "FilesystemCorruption"
		}
		return g, "FilesystemError"
	}
	if g := groups(fsExtOther, line); g != nil {
		return g, "FilesystemError"
	}
	if g := groups(fsJournal, line); g != nil {
		delete(g, "abort")
		return g, "FilesystemError"
	}
	if g := groups(fsXFS, line); g != nil {
		return g, classifyXFS(g["detail"])
	}
	if g := groups(fsBtrfs, line); g != nil {
		switch detail := g["detail"]; {
		case strings.Contains(detail, "forced readonly"):
			return g, "FilesystemReadOnly"
		case g["level"] == "info":
			return nil, ""
		case btrCorrupt.MatchString(detail):
			return g, "FilesystemCorruption"
		case btrError.MatchString(detail):
			return g, "FilesystemError"
		}
		return nil, ""
	}
	if g := groups(fsFAT, line); g != nil {
		return g, "FilesystemError"
	}
	return nil, ""
}

func classifyXFS(detail string) string {
	switch {
	case strings.Contains(detail, "Block device removal"):
		return "VolumeDetachedInUse"
	case strings.Contains(detail, "Shutting down filesystem"), strings.Contains(detail, "Filesystem has been shut down"),
		strings.Contains(detail, "User initiated shutdown"):
		return "FilesystemShutdown"
	case xfsCorrupt.MatchString(detail):
		return "FilesystemCorruption"
	case xfsError.MatchString(detail):
		return "FilesystemError"
	}
	return ""
}

// ofSystemLog says whether a line of a file is the kernel's, as far as a file can say:
// of the system's log, and of no other program by its own words.
func ofSystemLog(r host.Record) bool {
	return ofFile(r, "/var/log/messages", "/var/log/syslog", "/var/log/kern.log") && (r.Identifier == "" || r.Identifier == "kernel")
}
