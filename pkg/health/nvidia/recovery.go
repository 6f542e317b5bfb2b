package nvidia

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/ekslogs/ekslogs/pkg/health"
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
	RecoveryIMEXDomain    RecoveryAction = 5
	RecoveryBusReset      RecoveryAction = 6
	RecoverySystemReboot  RecoveryAction = 7
)

// known says that we know what the action is.
func (a RecoveryAction) known() bool { return a >= RecoveryNone && a <= RecoverySystemReboot }

// Severity is what the action is worth: Fatal when the GPU cannot be used before it
// has been reset, or the node rebooted.
func (a RecoveryAction) Severity() health.Severity {
	switch a.Verdict() {
	case VerdictOK:
		return health.Info
	case VerdictWarn:
		return health.Warning
	}
	return health.Fatal
}

// Verdict is what is to be done about the GPU.
func (a RecoveryAction) Verdict() Verdict {
	switch a {
	case RecoveryNone:
		return VerdictOK
	case RecoveryNodeReboot, RecoverySystemReboot:
		return VerdictReboot
	case RecoveryGPUReset, RecoveryDrainAndReset, RecoveryBusReset:
		return VerdictReset
	}
	return VerdictWarn
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
	case RecoveryIMEXDomain:
		return "recover the IMEX domain"
	case RecoveryBusReset:
		return "reset the GPU's PCIe bus"
	case RecoverySystemReboot:
		return "reboot the system"
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
