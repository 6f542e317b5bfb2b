package rule

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// corpusLine returns line i of a reproducible journal as nodes write it: the kubelet,
// containerd and the kernel; one line in 10,000 is a fault.
func corpusLine(rnd *rand.Rand, i int) string {
	if i%10000 == 9999 {
		return fmt.Sprintf("watchdog: BUG: soft lockup - CPU#%d stuck for %ds! [python3:%d]", rnd.IntN(96), 20+rnd.IntN(20), rnd.IntN(1<<20))
	}
	id := func(n int) string {
		const hex = "0123456789abcdef"
		var b strings.Builder
		for range n {
			b.WriteByte(hex[rnd.IntN(16)])
		}
		return b.String()
	}
	pod := fmt.Sprintf("app-%d-%s", rnd.IntN(40), id(5))
	stamp := fmt.Sprintf("%02d:%02d:%02d.%06d", rnd.IntN(24), rnd.IntN(60), rnd.IntN(60), rnd.IntN(1000000))
	switch rnd.IntN(10) {
	case 0, 1, 2:
		return fmt.Sprintf(`I1201 %s    1234 reconciler_common.go:%d] "operationExecutor.VerifyControllerAttachedVolume started for volume \"kube-api-access-%s\" (UniqueName: \"kubernetes.io/projected/%s-kube-api-access\") pod \"%s\" (UID: \"%s\") " pod="default/%s"`, stamp, rnd.IntN(400), id(5), id(36), pod, id(36), pod)
	case 3, 4:
		return fmt.Sprintf(`I1201 %s    1234 pod_startup_latency_tracker.go:104] "Observed pod startup duration" pod="default/%s" podStartSLOduration=%d.%d podStartE2EDuration="3.2s" firstStartedPulling="2026-12-01 00:00:00 +0000 UTC" observedRunningTime="2026-12-01 00:00:01"`, stamp, pod, rnd.IntN(9), rnd.IntN(1000000))
	case 5, 6, 7:
		return fmt.Sprintf(`time="2026-12-01T%sZ" level=info msg="StartContainer for \"%s\" returns successfully"`, stamp, id(64))
	case 8:
		return fmt.Sprintf("eth0: renamed from veth%s", id(8))
	}
	return fmt.Sprintf("IPv6: ADDRCONF(NETDEV_CHANGE): eni%s: link becomes ready", id(11))
}

// corpus returns n lines and their length in bytes.
func corpus(n int) ([]string, int64) {
	rnd := rand.New(rand.NewPCG(1, 2))
	lines := make([]string, n)
	var size int64
	for i := range lines {
		lines[i] = corpusLine(rnd, i)
		size += int64(len(lines[i]))
	}
	return lines, size
}
