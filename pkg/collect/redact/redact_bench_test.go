package redact

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// ordinaryLog is text as journals and container logs hold it.
func ordinaryLog() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 8<<20; i++ {
		fmt.Fprintf(&b, "2026-01-02T15:04:05.%06d+0000 ip-10-0-1-%d kubelet[1234]: I0102 15:04:05.%06d    1234 reconciler_common.go:245] \"operationExecutor.VerifyControllerAttachedVolume started for volume \\\"kube-api-access-x%d\\\" (UniqueName: \\\"kubernetes.io/projected/0a1b-%d\\\") pod \\\"coredns-%d\\\"\" pod=\"kube-system/coredns-%d\"\n", i%1000000, i%250, i%1000000, i, i, i, i)
		fmt.Fprintf(&b, "{\"level\":\"info\",\"ts\":\"2026-01-02T15:04:05.%03dZ\",\"caller\":\"ipamd/ipamd.go:%d\",\"msg\":\"Current warm IP stats\",\"total\":%d,\"assigned\":%d}\n", i%1000, i%2000, i%50, i%30)
		if i%200 == 0 {
			fmt.Fprintf(&b, "Authorization: Bearer abc%d.def.ghi\n", i)
		}
	}
	return b.Bytes()
}

func BenchmarkOrdinaryLog(b *testing.B) {
	in := ordinaryLog()
	r := New()
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		w := r.Writer(io.Discard)
		for rest := in; len(rest) > 0; {
			n := min(32<<10, len(rest))
			if _, err := w.Write(rest[:n]); err != nil {
				b.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
