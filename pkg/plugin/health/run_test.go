package health

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/test/fleet"
)

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func runWith(ctx context.Context, kubeconfig string, out, errOut io.Writer, args ...string) int {
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}
	return Run(ctx, append(args, "--kubeconfig", kubeconfig), []string{"TERM=xterm"}, streams)
}

func (f *fakeAPI) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code = runWith(t.Context(), f.kubeconfig(t), &out, &errOut, args...)
	return code, out.String(), errOut.String()
}

func TestAServerWithoutStreamingListsIsAskedForPages(t *testing.T) {
	var nodes []*corev1.Node
	for i := range 1200 {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%04d", i)}})
	}
	api := newFakeAPI(t, nodes...)
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("sendInitialEvents") == "" {
			return false
		}
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden")
		return true
	}
	code, out, errOut := api.run(t, "nodes", "summary")
	if code != exitOK || !strings.HasPrefix(out, "1200 nodes") || !strings.Contains(out, "n1199") {
		t.Errorf("exit code %d, %.60s, %s", code, out, errOut)
	}
	pages := 0
	for request := range strings.SplitSeq(api.requests(), "\n") {
		if !strings.HasPrefix(request, "/api/v1/nodes?") || strings.Contains(request, "watch") {
			continue
		}
		pages++
		if !strings.Contains(request, "limit=500") || strings.Contains(request, "resourceVersion=") {
			t.Errorf("asked for %s", request)
		}
	}
	if pages != 3 {
		t.Errorf("%d pages", pages)
	}
}

func TestAListThatEndsHalfWayIsAnError(t *testing.T) {
	api := newFakeAPI(t, fleet.Light(time.Now())...)
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("sendInitialEvents") == "" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, `{"type":"ADDED","object":{"kind":"Node","apiVersion":"v1","metadata":{"name":"only-one"}}}`)
		return true
	}
	code, out, errOut := api.run(t, "nodes", "summary")
	if code != exitError || !strings.Contains(errOut, "half-way") || out != "" {
		t.Errorf("exit code %d, %q, %q: half of a fleet was shown as the whole", code, out, errOut)
	}
}

func TestASilentServerEndsWithinTheRequestTimeout(t *testing.T) {
	api := newFakeAPI(t)
	api.before = func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	}
	for _, args := range [][]string{{"nodes", "summary"}, {"nodes", "summary", "a"}, {"events"}, {"nodes", "watch"}, {"nodes", "describe", "a"}} {
		code, out, errOut := api.run(t, append(args, "--request-timeout", "200ms")...)
		if code != exitError || out != "" || !strings.Contains(errOut, "does not answer within 200ms") || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", args, code, errOut)
		}
	}
}

func TestWithoutRightsOnEventsTheSummaryWorksAndSaysSo(t *testing.T) {
	api := newFakeAPI(t, fleet.Light(time.Now())...)
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "events") && !strings.Contains(r.URL.Path, "pods") && !strings.Contains(r.URL.Path, "nodediagnostics") {
			return false
		}
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		return true
	}
	code, out, errOut := api.run(t, "nodes", "summary")
	if code != exitOK || !strings.Contains(out, "1 sick") || !strings.Contains(errOut, "note: Events (you may not list events") {
		t.Errorf("summary: exit code %d, %q, %q", code, out, errOut)
	}
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "cpu-3.test") && !strings.Contains(line, " ? ") {
			t.Errorf("warnings that cannot be known are not shown so: %s", line)
		}
	}
	code, out, _ = api.run(t, "nodes", "describe", "gpu-1.test")
	if code != exitOK || !strings.Contains(out, "Not shown: pods (you may not list pods") || !strings.Contains(out, "Not shown: whether a capture is under way") {
		t.Errorf("describe: exit code %d, %s", code, out)
	}
	if code, _, errOut := api.run(t, "events"); code != exitOK || !strings.Contains(errOut, "Events cannot be read") {
		t.Errorf("events: exit code %d, %q", code, errOut)
	}
}

func TestWithoutRightsOnNodesTheMissingRuleIsNamed(t *testing.T) {
	api := newFakeAPI(t)
	api.before = func(w http.ResponseWriter, _ *http.Request) bool {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "no")
		return true
	}
	code, _, errOut := api.run(t, "nodes", "summary")
	if code != exitError || !strings.Contains(errOut, "you may not list nodes") || !strings.Contains(errOut, `verbs: ["list"]`) {
		t.Errorf("exit code %d, %q", code, errOut)
	}
}

func TestAgesGoByTheServersClock(t *testing.T) {
	there := time.Now().Add(-72 * time.Hour)
	api := newFakeAPI(t, fleet.Light(there)...)
	api.before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Date", there.UTC().Format(http.TimeFormat))
		return false
	}
	code, out, errOut := api.run(t, "nodes", "summary", "--columns", "NODE,VERDICT,SINCE")
	if code != exitOK || !strings.Contains(out, "gpu-1.test  Sick         10d") || strings.Contains(out, "13d") {
		t.Errorf("exit code %d, %s", code, out)
	}
	if !strings.Contains(errOut, "this computer's clock is 7") || !strings.Contains(errOut, "ahead") {
		t.Errorf("said %q", errOut)
	}
}

func TestThePoolOfANamedNodeIsReadWhole(t *testing.T) {
	now := time.Now()
	nodes := fleet.Light(now)
	for i := range 3 {
		n := nodes[0].DeepCopy()
		n.Name = fmt.Sprintf("gpu-sick-%d.test", i)
		nodes = append(nodes, n)
	}
	api := newFakeAPI(t, nodes...)
	// Four of five nodes of the pool are sick.
	for _, args := range [][]string{{"gpu-1.test"}, {"-l", "node.kubernetes.io/instance-type=p5.48xlarge"}, nil} {
		_, out, _ := api.run(t, append([]string{"nodes", "summary", "--columns", "NODE,REPAIR"}, args...)...)
		if !strings.Contains(out, "blocked: 4/5 unhealthy > 20 %") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

func TestDescribeShowsPodsAndACaptureUnderWay(t *testing.T) {
	yes := true
	pod := func(name, kind string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Status: corev1.PodStatus{Phase: "Running"}}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "x", Controller: &yes}}
		}
		return p
	}
	api := newFakeAPI(t, fleet.Light(time.Now())...)
	api.pods = []*corev1.Pod{pod("web", "ReplicaSet"), pod("agent", "DaemonSet"), pod("bare", "")}
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/nodediagnostics/gpu-1.test") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"kind":"NodeDiagnostic","apiVersion":"eks.amazonaws.com/v1alpha1","metadata":{"name":"gpu-1.test"}}`)
			return true
		}
		return false
	}
	_, out, _ := api.run(t, "nodes", "describe", "gpu-1.test")
	for _, want := range []string{"2, and 1 that belong to the node", "ns/web", "nothing makes it anew", "kubectl ekslogs gpu-1.test --attach --kubeconfig "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.Contains(out, "ns/agent") {
		t.Error("a DaemonSet's pod is shown as hit")
	}
}

func TestArgsGoByTheNameOfTheProgram(t *testing.T) {
	for _, tc := range []struct{ argv, want string }{
		{"/usr/bin/kubectl-health nodes summary", "nodes summary"},
		{"kubectl-health-nodes summary", "nodes summary"},
		{`kubectl-health-nodes.exe summary`, "nodes summary"},
		{"kubectl_complete-health nodes s", "__complete nodes s"},
		{"kubectl_complete-health-nodes s", "__complete nodes s"},
	} {
		if got := strings.Join(Args(strings.Fields(tc.argv)), " "); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.argv, got, tc.want)
		}
	}
}
