package host

import "time"

// Source is a kind of log.
type Source string

// The kinds of log that records come from.
const (
	SourceKmsg    Source = "kmsg"
	SourceJournal Source = "journal"
	SourceFile    Source = "file"
)

// FacilityKernel is the syslog facility of the kernel's own messages. What user
// space writes to /dev/kmsg gets facility 1 (Documentation/ABI/testing/dev-kmsg).
const FacilityKernel = 0

// Unknown is the Priority or Facility of a record that does not name it.
const Unknown = -1

// Record is one record of a log, without the prefixes of the tool that printed it.
type Record struct {
	// Source is the kind of log.
	Source Source
	// Message is the text, escapes decoded. It may hold newlines, and whatever bytes
	// its writer chose.
	Message string
	// Priority is the syslog level, 0 (emergency) to 7 (debug), or Unknown.
	Priority int
	// Facility is the syslog facility, or Unknown.
	Facility int
	// Kernel says that the kernel itself wrote it: kmsg with facility 0, or the
	// journal with _TRANSPORT=kernel and SYSLOG_FACILITY=0.
	Kernel bool
	// Unit is the systemd unit whose words these are, or about which systemd speaks.
	Unit string
	// FromManager says that systemd (PID 1) spoke about Unit.
	FromManager bool
	// Identifier is the syslog identifier. Anyone can choose it: it proves nothing.
	Identifier string
	// Path is the file that the record was read from (SourceFile).
	Path string
	// At is the wall-clock time, zero when unknown.
	At time.Time
	// Monotonic is the time since boot, zero when unknown.
	Monotonic time.Duration
	// Boot is the boot id that the record belongs to, when known.
	Boot string
	// Keys are the dictionary of a kmsg record (SUBSYSTEM, DEVICE), nil when none.
	Keys map[string]string
	// Position identifies the record in its source, so that one read twice is told
	// once: "kmsg/BOOT/SEQ", "journal/CURSOR", "file/DEV:INODE/OFFSET".
	Position string
}
