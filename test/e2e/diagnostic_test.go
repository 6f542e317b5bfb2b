//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// ask creates the node's NodeDiagnostic, or edits it.
func (e *env) ask(destination string, categories ...string) {
	e.t.Helper()
	cmd := e.command("kubectl", "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(fmt.Sprintf(
		"{apiVersion: eks.amazonaws.com/v1alpha1, kind: NodeDiagnostic, metadata: {name: %s}, spec: {logCapture: {destination: %q, categories: [%s]}}}",
		node, destination, strings.Join(categories, ", ")))
	e.output(cmd)
}

// diagnostic returns the node's NodeDiagnostic and the state of its log capture.
func (e *env) diagnostic() (nd v1alpha1.NodeDiagnostic, state v1alpha1.CaptureState) {
	e.t.Helper()
	if err := json.Unmarshal([]byte(e.kubectl("get", "nodediagnostic", node, "-o", "json")), &nd); err != nil {
		e.t.Fatal(err)
	}
	if c := nd.Status.Capture(v1alpha1.CaptureTypeLog); c != nil {
		state = c.State
	}
	return nd, state
}

// completed waits for the capture of the current generation.
func (e *env) completed() v1alpha1.CaptureStateCompleted {
	e.t.Helper()
	var c v1alpha1.CaptureStateCompleted
	eventually(e.t, "completed capture of the current generation", func() bool {
		nd, state := e.diagnostic()
		if state.Completed == nil || state.Completed.ObservedGeneration != nd.Generation {
			return false
		}
		c = *state.Completed
		return true
	})
	return c
}

// supportFiles lists what lies in the node's support folder.
func (e *env) supportFiles() string {
	e.t.Helper()
	return strings.Join(strings.Fields(e.enter("find", "/var/log/support", "-mindepth", "1", "-printf", "%f %m\n")), " ")
}

func (e *env) delete() {
	e.t.Helper()
	e.kubectl("delete", "nodediagnostic", node)
}

func collected(c v1alpha1.CaptureStateCompleted) bool {
	return c.Reason == v1alpha1.ReasonSuccess || c.Reason == v1alpha1.ReasonSuccessWithErrors
}

func TestDiagnosticsThatCannotBeServedAreRefused(t *testing.T) {
	e := newEnv(t)
	packets := func(fields string) string {
		return `{packetCapture: {upload: {url: "https://h/", fields: {a: b}}, ` + fields + `}}`
	}
	for spec, want := range map[string]string{
		`{logCapture: {destination: node}}`:                                    "",
		`{logCapture: {destination: "https://h:9/k?X-Amz-Signature=1&b=%20"}}`: "",
		`{logCapture: {destination: node, categories: [Base, All]}}`:           "",
		packets(`duration: 30s, chunkSizeMB: 100`):                             "",
		`{}`:                                "",
		`{logCapture: {destination: Node}}`: `must be "node", to keep the bundle on the node, or an http:// or https:// URL`,
		`{logCapture: {destination: "ftp://h/k"}}`:                                  `must be "node", to keep the bundle on the node, or an http:// or https:// URL`,
		`{logCapture: {destination: "https://"}}`:                                   `must be "node", to keep the bundle on the node, or an http:// or https:// URL`,
		`{logCapture: {destination: "https://h/a b"}}`:                              `must be "node", to keep the bundle on the node, or an http:// or https:// URL`,
		`{logCapture: {categories: [All]}}`:                                         `spec.logCapture.destination: Required value`,
		`{logCapture: {destination: node, categories: [Logs]}}`:                     `supported values: "Base", "Device", "Networking", "Runtime", "System", "All"`,
		packets(`duration: 5 minutes`):                                              `must be a whole number followed by s, m or h, for example 30s or 5m`,
		packets(`duration: 5m, chunkSizeMB: 0`):                                     `should be greater than or equal to 1`,
		packets(`duration: 5m, chunkSizeMB: 101`):                                   `should be less than or equal to 100`,
		packets(`duration: 5m, mode: pcap`):                                         `supported values: "tcpdump"`,
		`{packetCapture: {duration: 5m, upload: {url: "s3://h/", fields: {a: b}}}}`: `must be an http:// or https:// URL`,
	} {
		cmd := e.command("kubectl", "create", "--dry-run=server", "-f", "-")
		cmd.Stdin = strings.NewReader("{apiVersion: eks.amazonaws.com/v1alpha1, kind: NodeDiagnostic, metadata: {name: some-node}, spec: " + spec + "}")
		out, err := cmd.CombinedOutput()
		if (err == nil) != (want == "") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q in:\n%s", spec, err, want, out)
		}
	}
}

func TestAnEditCapturesAgainAndADeletionCancels(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, e *env) {
		e.ask("node", "Base")
		if first := e.completed(); !collected(first) {
			t.Fatalf("first: %+v", first)
		}
		const bundle = node + "-logs.tar.gz 600 " + node + "-logs.tar.gz.sha256 600"
		if files := e.supportFiles(); files != bundle {
			t.Errorf("in the support folder: %q, want %q", files, bundle)
		}
		if mode := e.enter("stat", "-c", "%a", "/var/log/support"); mode != "700\n" {
			t.Errorf("the support folder has mode %s", mode)
		}
		e.ask("node", "System")
		if second := e.completed(); !collected(second) || second.ObservedGeneration != 2 {
			t.Fatalf("after the edit: %+v", second)
		}
		e.ask("node", "All")
		eventually(t, "capture at work", func() bool { _, s := e.diagnostic(); return s.Running != nil })
		e.delete()
		eventually(t, "empty support folder", func() bool { return e.supportFiles() == "" })
		e.ask("node", "Base")
		if again := e.completed(); !collected(again) || again.ObservedGeneration != 1 {
			t.Errorf("the recreated object: %+v", again)
		}
	})
}

func TestABundleIsSweptWhenItsTimeIsOver(t *testing.T) {
	inBothModes(t, []string{"--bundle-retention=3s"}, func(t *testing.T, e *env) {
		e.ask("node", "Base")
		first := e.completed()
		eventually(t, "empty support folder", func() bool { return e.supportFiles() == "" })
		if _, s := e.diagnostic(); s.Completed == nil || s.Completed.CaptureID != first.CaptureID {
			t.Errorf("the sweep changed the status: %+v", s)
		}
	})
}

func TestABundleIsSentToAURL(t *testing.T) {
	inBothModes(t, nil, func(t *testing.T, e *env) {
		var calls, bytes atomic.Int64
		const signature = "0123456789abcdef0123456789abcdef"
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			switch {
			case r.URL.Query().Get("X-Amz-Signature") != signature || r.Method != http.MethodPut || r.ContentLength != n:
				t.Errorf("%s %s with %d bytes of %d", r.Method, r.URL, n, r.ContentLength)
			case r.URL.Path == "/expired":
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprintf(w, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message><SignatureProvided>%s</SignatureProvided></Error>", signature)
			case calls.Add(1) == 1:
				http.Error(w, "slow down", http.StatusServiceUnavailable)
			default:
				bytes.Store(n)
			}
		}))
		defer srv.Close()
		e.ask(srv.URL+"/b/k.tar.gz?X-Amz-Signature="+signature, "Base")
		if sent := e.completed(); !collected(sent) || bytes.Load() == 0 || calls.Load() != 2 || strings.Contains(sent.Message, signature) {
			t.Errorf("%+v; %d calls, %d bytes stored", sent, calls.Load(), bytes.Load())
		}
		e.ask(srv.URL+"/expired?X-Amz-Signature="+signature, "Base")
		refused := e.completed()
		if refused.Reason != v1alpha1.ReasonFailure || !strings.Contains(refused.Message, "403 Forbidden: AccessDenied: Request has expired") || strings.Contains(refused.Message, signature) {
			t.Errorf("%+v", refused)
		}
		if left := e.enter("find", "/var/log", "/var/lib/node-agent", "-name", "*"+node+"-logs*"); left != "" {
			t.Errorf("left on the node: %s", left)
		}
	})
}

// hostAgent starts an agent on the node that the test itself ends.
func hostAgent(e *env) *exec.Cmd {
	e.t.Helper()
	cmd, err := e.Enter(e.t.Context(), program(e.Cluster, "node-agent"), "run", "--node-name", node)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	return cmd
}

func TestACaptureOutlivesNoAgentAndRunsOnlyOnce(t *testing.T) {
	e := newEnv(t)
	e.apply("packaging/node-agent-host-rbac.yaml")
	agent := hostAgent(e)
	e.ask("node", "Base")
	first := e.completed()
	e.ask("node", "All")
	eventually(t, "capture at work", func() bool { _, s := e.diagnostic(); return s.Running != nil })
	// As the kernel does it when memory runs out.
	_ = agent.Process.Kill()
	_ = agent.Wait()
	if _, s := e.diagnostic(); s.Running == nil {
		t.Fatalf("the capture was over before the agent was killed: %+v", s)
	}
	agent = hostAgent(e)
	failed := e.completed()
	if failed.Reason != v1alpha1.ReasonFailure || failed.Message != "agent restarted during capture" {
		t.Errorf("after the kill: %+v", failed)
	}
	eventually(t, "tidy support folder, with the bundle of before", func() bool {
		return e.supportFiles() == node+"-logs.tar.gz 600 "+node+"-logs.tar.gz.sha256 600"
	})
	e.ask("node", "Base")
	again := e.completed()
	if !collected(again) || again.CaptureID == first.CaptureID {
		t.Errorf("after an edit: %+v", again)
	}
	_ = agent.Process.Signal(syscall.SIGTERM)
	_ = agent.Wait()
	agent = hostAgent(e)
	// Time for a new agent to do something about it, which it must not.
	e.kubectl("annotate", "nodediagnostic", node, "touched=yes")
	e.ask("node", "Base")
	if _, s := e.diagnostic(); s.Completed == nil || s.Completed.CaptureID != again.CaptureID {
		t.Errorf("a restart changed the status: %+v", s)
	}
	e.ask("node", "All")
	eventually(t, "capture at work", func() bool { _, s := e.diagnostic(); return s.Running != nil })
	_ = agent.Process.Signal(syscall.SIGTERM)
	_ = agent.Wait()
	if stopped := e.completed(); stopped.Reason != v1alpha1.ReasonFailure || !strings.Contains(stopped.Message, "stopped") {
		t.Errorf("after SIGTERM: %+v", stopped)
	}
}
