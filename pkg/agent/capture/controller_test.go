package capture

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

func TestACaptureRunsOnceAndItsBundleGoesWithTheObject(t *testing.T) {
	b := newBench(t, "ok")
	b.start()
	b.api.create(toNode())
	got := b.completed(1)
	if got.Reason != v1alpha1.ReasonSuccess || !strings.Contains(got.Message, "100 items collected, 7 absent or empty, ") || got.CaptureID == "" {
		t.Errorf("got %+v", got)
	}
	for path, want := range map[string]fs.FileMode{b.bundle(): 0o600, b.bundle() + ".sha256": 0o600, filepath.Dir(b.bundle()): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info, err)
		}
	}
	b.stop()
	b.start() // and a restart changes nothing
	b.api.edit(func(nd *v1alpha1.NodeDiagnostic) { nd.Generation-- })
	b.stop()
	if want := "uid1: Log running\nuid1: Log Success of 1"; b.history() != want {
		t.Errorf("history:\n%s\nwant:\n%s", b.history(), want)
	}
	b.start()
	b.api.delete()
	b.gone(b.bundle())
	b.gone(b.bundle() + ".sha256")
}

func TestTheChildGetsTheWholeRequest(t *testing.T) {
	b := newBench(t, "ok")
	b.cfg.Findings = func() []byte { return []byte("[]") }
	b.start()
	spec := toNode()
	spec.LogCapture.Categories = []v1alpha1.LogCategory{v1alpha1.LogCategorySystem}
	b.api.create(spec)
	b.completed(1)
	raw, err := os.ReadFile(b.bundle())
	if err != nil {
		t.Fatal(err)
	}
	var req request
	if err := json.Unmarshal(raw, &req); err != nil {
		t.Fatal(err)
	}
	if req.Root != b.host.Root() || req.Node != "n" || req.Version != "test" || req.Timeout <= 0 || req.Timeout >= DefaultTimeout ||
		string(req.Findings) != "[]" || len(req.Categories) != 1 {
		t.Errorf("got %+v", req)
	}
	// The API server knows no nodes here: that is for the bundle to say.
	if len(req.Extra) != 2 || req.Extra[0].Path != "kubernetes/node.json" || !strings.Contains(req.Extra[0].Err, "forbidden") {
		t.Errorf("extra files %+v", req.Extra)
	}
}

func TestAnEditRunsItAgainAndCancelsTheOneAtWork(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	b := newBench(t, "ok@"+gate)
	b.start()
	b.api.create(toNode())
	b.running()
	b.api.edit(func(nd *v1alpha1.NodeDiagnostic) { nd.Spec.LogCapture.Categories = []v1alpha1.LogCategory{"Base"} })
	b.until("the second start", func() bool { return strings.Count(b.history(), "running") == 2 })
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.completed(2)
	b.api.edit(func(nd *v1alpha1.NodeDiagnostic) { nd.Spec.LogCapture.Categories = nil })
	b.completed(3)
	if strings.Contains(b.history(), "of 1") || strings.Contains(b.history(), "Failure") {
		t.Errorf("the cancelled capture was reported:\n%s", b.history())
	}
}

func TestDeletingCancelsTheWorkAndARecreatedObjectIsANewRequest(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	b := newBench(t, "ok@"+gate)
	b.start()
	b.api.create(toNode())
	b.running()
	b.api.delete()
	b.api.create(toNode())
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := b.completed(1); got.Reason != v1alpha1.ReasonSuccess {
		t.Errorf("got %+v", got)
	}
	if strings.Contains(b.history(), "uid1: Log Success") || !strings.Contains(b.history(), "uid2: Log Success") {
		t.Errorf("history:\n%s", b.history())
	}
}

func TestACaptureFoundRunningIsFailedOnce(t *testing.T) {
	b := newBench(t, "ok")
	b.api.create(toNode())
	b.api.edit(func(nd *v1alpha1.NodeDiagnostic) {
		nd.Generation = 1
		nd.Status.SetCapture(v1alpha1.CaptureTypeLog, v1alpha1.CaptureState{Running: &v1alpha1.CaptureStateRunning{CaptureID: "before"}})
	})
	b.start()
	got := b.completed(1)
	if got.Reason != v1alpha1.ReasonFailure || got.Message != "agent restarted during capture" || got.CaptureID != "before" {
		t.Errorf("got %+v", got)
	}
	b.api.edit(func(*v1alpha1.NodeDiagnostic) {})
	if got := b.completed(2); got.Reason != v1alpha1.ReasonSuccess {
		t.Errorf("after an edit: %+v", got)
	}
}

func TestStoppingTheAgentSaysSo(t *testing.T) {
	b := newBench(t, "ok@/never")
	b.start()
	b.api.create(toNode())
	b.running()
	b.stop()
	if got := b.completed(1); got.Reason != v1alpha1.ReasonFailure || !strings.Contains(got.Message, "stopped") {
		t.Errorf("got %+v", got)
	}
}

func TestAStatusIsWrittenOnceTheAPIServerTakesIt(t *testing.T) {
	b := newBench(t, "ok")
	b.api.refuse = 2
	b.start()
	b.api.create(toNode())
	if got := b.completed(1); got.Reason != v1alpha1.ReasonSuccess {
		t.Errorf("got %+v", got)
	}
	if want := "uid1: Log running\nuid1: Log Success of 1"; b.history() != want {
		t.Errorf("history:\n%s\nwant:\n%s", b.history(), want)
	}
}

func TestWhatGoesWrongInTheCaptureIsSaid(t *testing.T) {
	for role, want := range map[string][2]string{
		"die":    {v1alpha1.ReasonFailure, "SIGKILL"},
		"full":   {v1alpha1.ReasonFailure, "write /var/log/support/n-logs.tar.gz: no space left"},
		"mute":   {v1alpha1.ReasonFailure, "without a result"},
		"errors": {v1alpha1.ReasonSuccessWithErrors, "100 items collected, 2 failed (networking/x.txt: timed out; errors.txt in the bundle lists all), 7 absent"},
	} {
		t.Run(role, func(t *testing.T) {
			b := newBench(t, role)
			b.start()
			b.api.create(toNode())
			if got := b.completed(1); got.Reason != want[0] || !strings.Contains(got.Message, want[1]) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestACaptureIsBounded(t *testing.T) {
	b := newBench(t, "ok@/never")
	b.cfg.Timeout = 200 * time.Millisecond
	b.start()
	b.api.create(toNode())
	if got := b.completed(1); got.Reason != v1alpha1.ReasonFailure || !strings.Contains(got.Message, "a capture may take 200ms") {
		t.Errorf("got %+v", got)
	}
}

func TestABundleIsSentToAURLAndDoesNotStay(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusForbidden} {
		b := newBench(t, "ok")
		var sent int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent = r.ContentLength
			w.WriteHeader(code)
		}))
		defer srv.Close()
		b.start()
		spec := toNode()
		spec.LogCapture.Destination = srv.URL + "/bucket/n.tar.gz?X-Amz-Signature=0123456789abcdef"
		b.api.create(spec)
		got := b.completed(1)
		if want := map[int]string{200: v1alpha1.ReasonSuccess, 403: v1alpha1.ReasonFailure}[code]; got.Reason != want || sent <= 0 {
			t.Errorf("%d: %+v, %d bytes sent", code, got, sent)
		}
		if !strings.Contains(got.Message, "/bucket/n.tar.gz") || strings.Contains(got.Message, "0123456789abcdef") {
			t.Errorf("message %q", got.Message)
		}
		if left, _ := os.ReadDir(b.host.Path("/var/lib/node-agent/uploads")); len(left) > 0 {
			t.Errorf("%d: left on the node: %v", code, left)
		}
		b.stop()
	}
}

func TestABundleIsSweptAndItsObjectIsNotServedAgain(t *testing.T) {
	b := newBench(t, "ok")
	b.cfg.Retention = 50 * time.Millisecond
	b.start()
	b.api.create(toNode())
	b.completed(1)
	b.gone(b.bundle())
	b.gone(b.bundle() + ".sha256")
	if n := strings.Count(b.history(), "running"); n != 1 {
		t.Errorf("captured %d times", n)
	}
}

func TestPacketCapturesAreAnsweredHonestly(t *testing.T) {
	b := newBench(t, "ok")
	b.start()
	spec := toNode()
	spec.PacketCapture = &v1alpha1.PacketCapture{Duration: "5s"}
	b.api.create(spec)
	b.completed(1)
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	// The log capture comes first: clients look at captureStatuses[0].
	if got, want := b.api.history[len(b.api.history)-1], "uid1: Log Success of 1, Packet Failure of 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if msg := b.api.object.Status.Capture(v1alpha1.CaptureTypePacket).State.Completed.Message; !strings.Contains(msg, "isn't supported") {
		t.Errorf("message %q", msg)
	}
}

func TestNoCaptureIsStartedBesideOneThatHangs(t *testing.T) {
	b := newBench(t, "ok")
	c := New(b.cfg)
	c.job.hanging.Store(1)
	spec := toNode()
	reason, message := c.job.run(t.Context(), &v1alpha1.NodeDiagnostic{Spec: spec})
	if reason != v1alpha1.ReasonFailure || !strings.Contains(message, "cannot be killed") {
		t.Errorf("%s: %s", reason, message)
	}
	c.job.hanging.Store(0)
	if reason, message := c.job.run(t.Context(), &v1alpha1.NodeDiagnostic{Spec: spec}); reason != v1alpha1.ReasonSuccess {
		t.Errorf("once it is gone: %s: %s", reason, message)
	}
}

func TestWhileAnotherAgentIsInChargeNothingIsAnsweredNorRemoved(t *testing.T) {
	b := newBench(t, "ok")
	var standby atomic.Bool
	var asked atomic.Int32
	standby.Store(true)
	b.cfg.Standby = func() bool { asked.Add(1); return standby.Load() }
	if err := os.MkdirAll(filepath.Dir(b.bundle()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.bundle(), []byte("the other agent's"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start()
	b.until("the look without an object", func() bool { return asked.Load() >= 2 })
	b.api.create(toNode())
	b.until("the look at the object", func() bool { return asked.Load() >= 3 })
	b.stop()
	if got, err := os.ReadFile(b.bundle()); err != nil || string(got) != "the other agent's" || b.history() != "" {
		t.Errorf("bundle %q, %v; history:\n%s", got, err, b.history())
	}
	standby.Store(false)
	b.start()
	if got := b.completed(1); got.Reason != v1alpha1.ReasonSuccess {
		t.Errorf("got %+v", got)
	}
}
