package nvidia

import (
	"strconv"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// DriverVersion returns the version of the loaded driver ("575.57.08") as
// sysfs has it, which never blocks on a device; empty when none is loaded.
func DriverVersion(h *host.Host) string {
	v, err := h.ReadString("/sys/module/nvidia/version")
	if err != nil {
		return ""
	}
	return v
}

// DriverBranch returns the branch of a driver's version, 575 for "575.57.08", or 0
// when it has none.
func DriverBranch(version string) int {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
