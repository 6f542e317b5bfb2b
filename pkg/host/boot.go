package host

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// BootID is the kernel's random id of this boot, as Node.status.nodeInfo.bootID has
// it: lower-case hex with dashes (/proc/sys/kernel/random/boot_id).
func (h *Host) BootID() (string, error) {
	id, err := h.ReadString("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("boot id: %w", err)
	}
	return id, nil
}

// BootTime is when the machine booted, by its wall clock of now and to the second
// (btime of /proc/stat). It moves when the wall clock is stepped.
func (h *Host) BootTime() (time.Time, error) {
	stat, err := h.ReadFile("/proc/stat", 0)
	if err != nil {
		return time.Time{}, fmt.Errorf("boot time: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(stat))
	lines.Buffer(nil, 1<<20) // "intr" is one long line
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "btime "); ok {
			sec, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			if err != nil {
				return time.Time{}, fmt.Errorf("boot time: %w", err)
			}
			return time.Unix(sec, 0), nil
		}
	}
	return time.Time{}, fmt.Errorf("boot time: no btime in /proc/stat")
}
