package capture

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/agent/capture/upload"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/kube"
)

const roleVar = "CAPTURE_TEST_ROLE"

// The test binary is its own capture process: the role says what becomes of it.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" && len(os.Args) > 1 && os.Args[1] == "capture" {
		play(role)
		return
	}
	goleak.VerifyTestMain(m)
}

func play(role string) {
	var req request
	_ = json.NewDecoder(os.Stdin).Decode(&req)
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(report{Progress: "system/uname.txt"})
	if hold, file, ok := strings.Cut(role, "@"); ok { // works until the file is there
		role = hold
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		for {
			if _, err := os.Stat(file); err == nil {
				break
			}
			select {
			case <-term:
				_ = out.Encode(report{Error: "context canceled"})
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	switch role {
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "full":
		_ = out.Encode(report{Error: "write " + req.Output + ": no space left on device"})
	case "mute":
	default:
		body, _ := json.Marshal(req)
		_ = os.WriteFile(req.Output, body, 0o600)
		_ = os.WriteFile(req.Output+".sha256", []byte("0 x\n"), 0o600)
		res := &result{Bytes: int64(len(body)), OK: 100, Absent: 7, Duration: 1500 * time.Millisecond}
		if role == "errors" {
			res.Failed, res.FirstErrors = 2, []string{"networking/x.txt: timed out"}
		}
		_ = out.Encode(report{Result: res})
	}
}

// bench is a controller at work on a fixture host, against the fake API server.
type bench struct {
	*testing.T
	api  *fakeAPI
	host *host.Host
	cfg  Config
	stop func()
}

func newBench(t *testing.T, role string) *bench {
	t.Setenv(roleVar, role)
	b := &bench{T: t, api: newFakeAPI(t), host: fixtureHost(t)}
	cfg := &rest.Config{Host: b.api.url}
	diagnostics, err := kube.NewClient(cfg, v1alpha1.GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	core, err := kube.NewClient(cfg, corev1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	b.cfg = Config{
		Host: b.host, Node: "n", Version: "test", Diagnostics: diagnostics, Core: core,
		StateDir: "/var/lib/node-agent", Retention: time.Hour, Log: slog.New(slog.DiscardHandler),
	}
	return b
}

// start starts an agent; it is stopped when the test ends, or by b.stop.
func (b *bench) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c := New(b.cfg)
	c.job.uploader = upload.Uploader{WaitMin: time.Millisecond, WaitMax: time.Millisecond}
	go func() {
		defer close(done)
		_ = c.Run(ctx)
	}()
	b.stop = func() {
		cancel()
		<-done
	}
	b.Cleanup(b.stop)
}

// until waits for something that is bound to happen.
func (b *bench) until(what string, ok func() bool) {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	b.Fatalf("never came: %s; so far: %q", what, b.api.history)
}

func (b *bench) completed(generation int64) v1alpha1.CaptureStateCompleted {
	b.Helper()
	var c *v1alpha1.CaptureStateCompleted
	b.until("completion", func() bool {
		s := b.api.log()
		if s == nil || s.Completed == nil || s.Completed.ObservedGeneration != generation {
			return false
		}
		c = s.Completed
		return true
	})
	return *c
}

func (b *bench) running() {
	b.Helper()
	b.until("running", func() bool { s := b.api.log(); return s != nil && s.Running != nil })
}

func (b *bench) bundle() string { return b.host.Path(SupportDir + "/" + BundleName("n")) }

func (b *bench) gone(path string) {
	b.Helper()
	b.until("removal of "+path, func() bool {
		_, err := os.Lstat(path)
		return errors.Is(err, fs.ErrNotExist)
	})
}

func (b *bench) history() string {
	b.api.mu.Lock()
	defer b.api.mu.Unlock()
	return strings.Join(b.api.history, "\n")
}

func toNode() v1alpha1.NodeDiagnosticSpec {
	return v1alpha1.NodeDiagnosticSpec{LogCapture: &v1alpha1.LogCapture{Destination: v1alpha1.DestinationNode}}
}

func TestACaptureRunsOnceAndItsBundleGoesWithTheObject(t *testing.T) {
	b := newBench(t, "ok")
	b.start()
	b.api.create(toNode())
	got := b.completed(1)
	if got.Reason != v1alpha1.ReasonSuccess || !strings.Contains(got.Message, "100 items") || got.CaptureID == "" {
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
		"errors": {v1alpha1.ReasonSuccessWithErrors, "2 items failed, errors.txt in the bundle lists them (networking/x.txt: timed out)"},
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
