package term

import (
	"fmt"
	"time"
)

// Bytes is a size for people: 999 B, 1.5 KiB, 12 MiB.
func Bytes(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", max(n, 0))
	}
	f, unit := float64(n), -1
	// 1023.95 would round to 1024.0 of the smaller unit.
	for f >= 1023.95 && unit < len(units)-1 {
		f /= 1024
		unit++
	}
	if f >= 9.95 {
		return fmt.Sprintf("%.0f %ciB", f, units[unit])
	}
	return fmt.Sprintf("%.1f %ciB", f, units[unit])
}

// Seconds is a span for people, with a tenth of a second up to ten seconds: 0.8s,
// 12s, 3m5s.
func Seconds(d time.Duration) string {
	if d < 9950*time.Millisecond {
		return fmt.Sprintf("%.1fs", max(d, 0).Seconds())
	}
	return d.Round(time.Second).String()
}
