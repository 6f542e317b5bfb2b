package nvidia

import (
	"strconv"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// Verdict is what is to be done about one GPU.
type Verdict string

// Verdicts, from least to worst.
const (
	VerdictOK      Verdict = "ok"
	VerdictWarn    Verdict = "warn"
	VerdictReset   Verdict = "reset"
	VerdictReboot  Verdict = "reboot"
	VerdictReplace Verdict = "replace"
)

// Rank orders verdicts: a higher rank is worse.
func (v Verdict) Rank() int {
	for i, known := range []Verdict{VerdictOK, VerdictWarn, VerdictReset, VerdictReboot, VerdictReplace} {
		if v == known {
			return i
		}
	}
	return 0
}

// actionWeight orders NVIDIA's immediate actions by how much they disturb.
func actionWeight(action string) int {
	switch action {
	case "RESTART_BM":
		return 5
	case "RESTART_VM", "CHECK_MECHANICALS":
		return 4
	case "RESET_GPU", "WORKFLOW_XID_48", "WORKFLOW_NVLINK_ERR", "CONTACT_SUPPORT":
		return 3
	case "RESTART_APP", "UPDATE_SWFW":
		return 2
	}
	return 1
}

// xidVerdict is what a fatal code asks for.
func xidVerdict(code int, action string) Verdict {
	switch {
	case code == 64:
		// No spare rows are left: a reset hides that only until the next error.
		return VerdictReplace
	case action == "RESTART_BM", action == "RESTART_VM":
		return VerdictReboot
	case action == "CHECK_MECHANICALS", action == "CONTACT_SUPPORT":
		return VerdictReplace
	}
	return VerdictReset
}

// VerdictOfReason is what a finding with this reason about a GPU asks for. A finding
// itself may know more and says so in its field "verdict".
func VerdictOfReason(reason string, severity health.Severity) Verdict {
	switch reason {
	case "NvidiaRowRemapFailure":
		return VerdictReplace
	case "NvidiaGPULost":
		return VerdictReboot
	case "NvidiaRowRemapPending":
		return VerdictReset
	}
	switch severity {
	case health.Info:
		return VerdictOK
	case health.Warning:
		return VerdictWarn
	}
	number, isXid := strings.CutPrefix(strings.TrimSuffix(reason, "Error"), "NvidiaXID")
	code, err := strconv.Atoi(number)
	if !isXid || err != nil {
		return VerdictReset
	}
	t, err := loadTables()
	if err != nil {
		return VerdictReset
	}
	return xidVerdict(code, t.xids[code].action)
}

func worseVerdict(a, b Verdict) Verdict {
	if b.Rank() > a.Rank() {
		return b
	}
	return a
}
