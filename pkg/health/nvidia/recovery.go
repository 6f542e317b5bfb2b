package nvidia

import (
	"fmt"
	"regexp"
	"strconv"
)

// RecoveryAction is what the driver asks for to bring a GPU back, by its number in
// Xid 154 and in NVML (nvmlDeviceGpuRecoveryAction_t). The words for it change with
// the driver; the numbers do not.
type RecoveryAction int

// The recovery actions of nvml.h.
const (
	RecoveryNone          RecoveryAction = 0
	RecoveryGPUReset      RecoveryAction = 1
	RecoveryNodeReboot    RecoveryAction = 2
	RecoveryDrainP2P      RecoveryAction = 3
	RecoveryDrainAndReset RecoveryAction = 4
)

// known says that we know what the action is.
func (a RecoveryAction) known() bool { return a >= RecoveryNone && a <= RecoveryDrainAndReset }

// fatal says that the GPU cannot be used before the action has been taken.
func (a RecoveryAction) fatal() bool {
	return a == RecoveryGPUReset || a == RecoveryNodeReboot || a == RecoveryDrainAndReset
}

// String says what to do.
func (a RecoveryAction) String() string {
	switch a {
	case RecoveryNone:
		return "none"
	case RecoveryGPUReset:
		return "reset the GPU"
	case RecoveryNodeReboot:
		return "reboot the node"
	case RecoveryDrainP2P:
		return "drain peer-to-peer traffic"
	case RecoveryDrainAndReset:
		return "drain the GPU and reset it"
	}
	return fmt.Sprintf("action %#x", int(a))
}

// recoveryChange is the text of Xid 154.
type recoveryChange struct {
	from, to RecoveryAction
	// text is the driver's word for to.
	text string
}

var recoveryRE = regexp.MustCompile(`changed from 0x([0-9a-fA-F]{1,7})\b.*? to 0x([0-9a-fA-F]{1,7})\b(?: \((.*)\))?`)

func parseRecovery(text string) (recoveryChange, bool) {
	m := recoveryRE.FindStringSubmatch(text)
	if m == nil {
		return recoveryChange{}, false
	}
	from, _ := strconv.ParseInt(m[1], 16, 32)
	to, _ := strconv.ParseInt(m[2], 16, 32)
	return recoveryChange{from: RecoveryAction(from), to: RecoveryAction(to), text: m[3]}, true
}
