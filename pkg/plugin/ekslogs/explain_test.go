package ekslogs

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// when answers requests whose line holds part.
func when(method, part string, h http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.Contains(r.URL.Path, part) {
			return false
		}
		h(w, r)
		return true
	}
}

func forbidden(message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, message)
	}
}

// says is the kubelet, which answers in plain text or HTML.
func says(code int, kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	const bundlePath = "/proxy/logs/support/a-logs.tar.gz"
	for _, tc := range []struct {
		name   string
		before func(http.ResponseWriter, *http.Request) bool
		code   int
		want   []string
	}{
		{"no definition", when("GET", "/apis/eks.amazonaws.com/v1alpha1", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }),
			exitError, []string{"does not know NodeDiagnostics", "kubectl apply -f"}},
		{"no right to create", when("POST", "/nodediagnostics", forbidden(`nodediagnostics.eks.amazonaws.com is forbidden: User "dev" cannot create resource "nodediagnostics"`)),
			exitError, []string{`you may not "create" nodediagnostics`, `User "dev"`, `- apiGroups: ["eks.amazonaws.com"]`, `resources: ["nodediagnostics"]`, `verbs: ["create"]`}},
		{"no right to download, told before anything is collected", when("POST", "/selfsubjectaccessreviews", func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusCreated, map[string]any{"status": map[string]any{"allowed": false}})
		}), exitError, []string{`you may not "get" nodes/proxy`, `- apiGroups: [""]`, `resources: ["nodes/proxy"]`, `verbs: ["get"]`}},
		{"no right to download", when("GET", bundlePath, forbidden(`nodes "a" is forbidden: User "dev" cannot get resource "nodes/proxy"`)),
			exitError, []string{`resources: ["nodes/proxy"]`}},
		{"no right to delete", when("DELETE", "/nodediagnostics/a", forbidden(`User "dev" cannot delete resource "nodediagnostics"`)),
			exitOK, []string{"left behind", `verbs: ["delete"]`}},
		{"log handler off", when("GET", bundlePath, says(http.StatusMethodNotAllowed, "text/plain", "logs endpoint is disabled.")),
			exitSomeFailed, []string{"enableSystemLogHandler: true", "logs endpoint is disabled."}},
		{"a folder in its place", when("GET", bundlePath, says(http.StatusOK, "text/html; charset=utf-8", "<pre></pre>")),
			exitSomeFailed, []string{"there is a folder in the bundle's place"}},
		{"a redirection to a folder", when("GET", bundlePath, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "a-logs.tar.gz/")
			w.WriteHeader(http.StatusMovedPermanently)
		}), exitSomeFailed, []string{"there is a folder in the bundle's place"}},
		{"swept", when("GET", bundlePath, says(http.StatusNotFound, "text/plain", "404 page not found")),
			exitSomeFailed, []string{"/var/log/support/a-logs.tar.gz", "ten minutes"}},
		{"kubelet refuses", when("GET", bundlePath, says(http.StatusForbidden, "text/plain", "Forbidden (user=apiserver, verb=get)")),
			exitSomeFailed, []string{"kubelet refuses the API server"}},
		{"wrong checksum beside it", when("GET", bundlePath+".sha256", says(http.StatusOK, "text/plain", strings.Repeat("0", 64)+"  a-logs.tar.gz\n")),
			exitSomeFailed, []string{"the checksum beside it on the node says 0000"}},
		{"hostile words", when("GET", bundlePath, says(http.StatusTeapot, "text/plain", "\x1b[2J\x1b]0;owned\x07no")),
			exitSomeFailed, []string{"418", "no"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			api := newFakeAPI(t)
			api.addNode("a", foreignBundle(t))
			api.before = tc.before
			got := plugin(t, api, "a")
			got.want(t, tc.code, tc.want...)
			if strings.ContainsAny(got.err+got.out, "\x1b\x07") {
				t.Errorf("control characters came through: %q", got.err)
			}
			if tc.name != "no right to delete" && api.object("a") != nil {
				t.Error("the NodeDiagnostic was left behind")
			}
		})
	}
}

func TestTheSameFailureOfManyNodesIsToldOnce(t *testing.T) {
	api := newFakeAPI(t)
	for i := range 20 {
		api.addNode(fmt.Sprintf("n%02d", i), foreignBundle(t))
	}
	api.before = when("POST", "/nodediagnostics", forbidden(`User "dev" cannot create resource "nodediagnostics"`))
	got := plugin(t, api, "--all")
	got.want(t, exitError)
	if n := strings.Count(got.err, "apiGroups"); n != 1 {
		t.Errorf("the rule is printed %d times:\n%s", n, got.err)
	}
}

func TestAFailureOfTheAgentIsToldInItsWords(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	api.agent = func(*v1alpha1.NodeDiagnostic) { api.complete("a", "Failure", "no room on /var/log\x1b[31m") }
	plugin(t, api, "a").want(t, exitSomeFailed, "could not collect (Failure): no room on /var/log\n")
	if len(api.requests("/proxy/")) != 0 {
		t.Error("it downloaded all the same")
	}
	if api.object("a") != nil {
		t.Error("the NodeDiagnostic was left behind")
	}
}

func TestAnAgentThatTakesTooLong(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	api.agent = func(*v1alpha1.NodeDiagnostic) {
		api.update("a", func(obj *v1alpha1.NodeDiagnostic) {
			obj.Status.SetCapture(v1alpha1.CaptureTypeLog, v1alpha1.CaptureState{Running: &v1alpha1.CaptureStateRunning{}})
		})
	}
	plugin(t, api, "a", "--timeout", "1s").want(t, exitSomeFailed, "still collecting after 1s", "--timeout")
	api.agent = nil
	plugin(t, api, "a", "-t", "1s").want(t, exitSomeFailed, "has not begun after 1s")
	if api.object("a") != nil {
		t.Error("the NodeDiagnostic was left behind")
	}
}

func TestWhatIsKnownOfANodeIsToldAtOnce(t *testing.T) {
	hourAgo := metav1.NewTime(time.Now().Add(-time.Hour))
	for _, tc := range []struct {
		name   string
		change func(*corev1.Node)
		before func(http.ResponseWriter, *http.Request) bool
		code   int
		want   []string
		asks   bool
	}{
		{"silent kubelet", func(n *corev1.Node) {
			n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, hourAgo
		}, nil, exitSomeFailed, []string{"NotReady", "silent for 60m"}, false},
		{"a kubelet that never reported", func(n *corev1.Node) { n.Status.Conditions = nil }, nil, exitSomeFailed, []string{"NotReady", "never reported"}, false},
		{"unwell, but there", func(n *corev1.Node) {
			n.Status.Conditions[0].Status, n.Status.Conditions[0].Reason = corev1.ConditionFalse, "NetworkPluginNotReady"
		}, nil, exitOK, []string{"NotReady", "NetworkPluginNotReady"}, true},
		{"no sign of an agent", func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }, nil,
			exitOK, []string{"no sign of an agent"}, true},
		{"an agent that has gone", func(n *corev1.Node) { n.Status.Conditions[1].LastHeartbeatTime = hourAgo }, nil,
			exitOK, []string{"last heard of 60m ago"}, true},
		{"a pod that crashes", func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] },
			when("GET", "/api/v1/pods", func(w http.ResponseWriter, _ *http.Request) {
				p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "node-agent-x"}}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
				answer(w, http.StatusOK, corev1.PodList{Items: []corev1.Pod{p}})
			}), exitOK, []string{"pod kube-system/node-agent-x is CrashLoopBackOff"}, true},
		{"may not ask", func(*corev1.Node) {}, func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/api/v1/nodes/a" {
				return false
			}
			forbidden(`User "dev" cannot get resource "nodes"`)(w, r)
			return true
		}, exitOK, []string{`you may not "get" nodes`}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			api := newFakeAPI(t)
			tc.change(api.addNode("a", foreignBundle(t)))
			api.before = tc.before
			got := plugin(t, api, "a")
			got.want(t, tc.code, tc.want...)
			if asked := len(api.requests("POST /apis/eks")) > 0; asked != tc.asks {
				t.Errorf("the agent was asked: %v", asked)
			}
		})
	}
}

func TestANodeWithoutAnAgentIsNotWaitedFor(t *testing.T) {
	if testing.Short() {
		t.Skip("takes the 10 s that a node has to answer")
	}
	api := newFakeAPI(t)
	n := api.addNode("a", foreignBundle(t))
	n.Status.Conditions = n.Status.Conditions[:1]
	api.agent = nil
	plugin(t, api, "a").want(t, exitSomeFailed, "no sign of an agent", "no agent on the node answers")
	if api.object("a") != nil {
		t.Error("the NodeDiagnostic was left behind")
	}
}

func TestUnknownNodes(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("ip-10-0-1-42.ec2.internal", foreignBundle(t))
	got := plugin(t, api, "ip-10-0-1-43.ec2.internal")
	got.want(t, exitError, `there is no node "ip-10-0-1-43.ec2.internal". Did you mean ip-10-0-1-42.ec2.internal?`)
	if f := files(t, got.dir); f != "" {
		t.Errorf("folder: %s", f)
	}
	plugin(t, api, "ip-10-0-1-42.ec2.internal", "nope").want(t, exitSomeFailed, `no node "nope"`)
}
