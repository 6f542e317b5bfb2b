package capture

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
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
