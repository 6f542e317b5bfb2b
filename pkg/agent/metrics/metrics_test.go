package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/pkg/health/ledger"
	"github.com/ekslogs/ekslogs/pkg/host"
)

func scrape(t *testing.T, s *Server, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

func TestWhatIsCountedIsServedUnderTheAgreedNames(t *testing.T) {
	m := New()
	s := &Server{Metrics: m, Ready: func() error { return nil }}
	m.Found("KernelOops", ledger.Outcome{Counted: true, New: true, Severity: health.Warning})
	m.Found("KernelOops", ledger.Outcome{}) // a record that was read again
	m.Found("NvidiaXID79Error", ledger.Outcome{Counted: true, Severity: health.Fatal, Shadow: true})
	m.Found("SomeInfo", ledger.Outcome{Counted: true, Severity: health.Info})
	view := ledger.View{
		Conditions: []ledger.Condition{{Type: "KernelReady", Healthy: true}, {Type: "StorageReady", Reason: "FilesystemReadOnly"}},
		Findings:   []annotation.Finding{{Condition: "StorageReady", Reason: "FilesystemShutdown", Severity: "Fatal"}},
	}
	m.Conditions(view)
	m.Source(host.SourceStatus{Name: "kmsg", Up: true, Lost: 7})
	m.Source(host.SourceStatus{Name: "journal", Blind: "no"})
	m.Source(host.SourceStatus{Name: "file:/var/log/cron", Absent: true})
	m.Checked("zombies", time.Millisecond, errors.New("no"))
	m.Published(time.Millisecond, nil)
	_, body := scrape(t, s, "/metrics")
	for _, want := range []string{
		`problem_counter{reason="KernelOops"} 1`,
		`problem_gauge{reason="FilesystemReadOnly",type="StorageReady"} 1`,
		`problem_gauge{reason="FilesystemShutdown",type="StorageReady"} 1`,
		`node_agent_findings_total{reason="KernelOops",severity="Warning"} 1`,
		`node_agent_shadow_findings_total{reason="NvidiaXID79Error"} 1`,
		`node_agent_condition{type="KernelReady"} 1`,
		`node_agent_condition{type="StorageReady"} 0`,
		`node_agent_source_up{source="kmsg"} 1`,
		`node_agent_source_up{source="journal"} 0`,
		`node_agent_lost_records_total{source="kmsg"} 7`,
		`node_agent_check_errors_total{check="zombies"} 1`,
		`node_agent_publish_latency_seconds_count 1`,
		`node_agent_queue_depth 0`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	for _, bad := range []string{`source="file:/var/log/cron"`, `problem_counter{reason="SomeInfo"}`} {
		if strings.Contains(body, bad) {
			t.Errorf("%s is served", bad)
		}
	}
	m.Conditions(ledger.View{Conditions: []ledger.Condition{{Type: "StorageReady", Healthy: true}}})
	if _, body := scrape(t, s, "/metrics"); strings.Contains(body, "problem_gauge{") || strings.Contains(body, `type="KernelReady"`) {
		t.Error("a fault that is over, or a condition that is gone, is still served")
	}
}

func TestHealthIsTheProcessAndReadinessIsRegistration(t *testing.T) {
	s := &Server{Metrics: New(), Ready: func() error { return errors.New("the Node does not exist yet") }}
	if code, _ := scrape(t, s, "/healthz"); code != 200 {
		t.Errorf("healthz %d", code)
	}
	if code, body := scrape(t, s, "/readyz"); code != 503 || !strings.Contains(body, "does not exist") {
		t.Errorf("readyz %d %s", code, body)
	}
}

func TestTheLiveHeapIsServed(t *testing.T) {
	_, body := scrape(t, &Server{Metrics: New(), Ready: func() error { return nil }}, "/metrics")
	if !strings.Contains(body, "\ngo_gc_heap_live_bytes ") {
		t.Error("no line go_gc_heap_live_bytes")
	}
}
