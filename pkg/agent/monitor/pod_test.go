package monitor

import (
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
)

func TestThePodOfACgroupIsNamed(t *testing.T) {
	m := newTestMonitor(t, t.TempDir(), nil)
	const uid = "1b2c3d4e-0000-4111-8222-333344445555"
	write(t, m.root+"/var/log/pods/ml_train-0_"+uid+"/c/0.log", "")
	for given, want := range map[string]any{uid: "ml/train-0", "1b2c3d4e-0000-4111-8222-000000000000": nil, "*": nil, "../../..": nil} {
		f := health.Finding{Reason: "KernelOops", Severity: health.Warning, Fields: map[string]any{"pod_uid": given}}
		m.namePod(f)
		if got := f.Fields["pod"]; got != want {
			t.Errorf("%s is %v, want %v", given, got, want)
		}
	}
	m.namePod(health.Finding{}) // no fields at all
}
