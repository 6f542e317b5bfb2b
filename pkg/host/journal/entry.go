package journal

// entry holds the fields of one line of "journalctl -o json" that we use. They lie in
// the line or in the decoder's scratch space, until the next call.
type entry struct {
	cursor, realtime, monotonic             []byte
	message, priority, facility, identifier []byte
	transport, systemdUnit, unit            []byte
	pid, boot, device, subsystem            []byte
}

// field returns where the value of a key goes, nil for one that is not used.
func (e *entry) field(key []byte) *[]byte {
	switch string(key) { // no allocation
	case "MESSAGE":
		return &e.message
	case "__CURSOR":
		return &e.cursor
	case "__REALTIME_TIMESTAMP":
		return &e.realtime
	case "__MONOTONIC_TIMESTAMP":
		return &e.monotonic
	case "PRIORITY":
		return &e.priority
	case "SYSLOG_FACILITY":
		return &e.facility
	case "SYSLOG_IDENTIFIER":
		return &e.identifier
	case "_TRANSPORT":
		return &e.transport
	case "_SYSTEMD_UNIT":
		return &e.systemdUnit
	case "UNIT":
		return &e.unit
	case "_PID":
		return &e.pid
	case "_BOOT_ID":
		return &e.boot
	case "_KERNEL_DEVICE":
		return &e.device
	case "_KERNEL_SUBSYSTEM":
		return &e.subsystem
	}
	return nil
}

// outputFields is what journalctl is asked for. It adds the fields that begin with
// two underscores by itself.
const outputFields = "MESSAGE,PRIORITY,SYSLOG_FACILITY,SYSLOG_IDENTIFIER,_TRANSPORT," +
	"_SYSTEMD_UNIT,UNIT,_PID,_BOOT_ID,_KERNEL_DEVICE,_KERNEL_SUBSYSTEM"
