package publish

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/pkg/kube"
)

// fakeAPI is an API server with one Node, for what a real one cannot be asked to do:
// fail. It merges patches with the API machinery's own code.
type fakeAPI struct {
	t   *testing.T
	srv *httptest.Server

	mu      sync.Mutex
	cond    *sync.Cond
	down    bool
	node    *corev1.Node
	version int
	patches []string
	events  map[string]*eventsv1.Event
	posts   int
	closed  bool
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{t: t, events: map[string]*eventsv1.Event{}, version: 10}
	f.cond = sync.NewCond(&f.mu)
	f.node = &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-1", ResourceVersion: "10"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True", Reason: "KubeletReady"}}},
	}
	f.srv = httptest.NewServer(f)
	t.Cleanup(func() {
		f.mu.Lock()
		f.closed = true
		f.cond.Broadcast()
		f.mu.Unlock()
		f.srv.CloseClientConnections()
		f.srv.Close()
	})
	return f
}

func (f *fakeAPI) client(style Style) rest.Interface {
	f.t.Helper()
	gv := corev1.SchemeGroupVersion
	if style != "" {
		gv = style.GroupVersion()
	}
	c, err := kube.NewClient(&rest.Config{Host: f.srv.URL, QPS: 1000, Burst: 1000}, gv)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case f.down:
		f.fail(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	case strings.HasSuffix(r.URL.Path, "/nodes") && r.URL.Query().Get("watch") == "":
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}}
		if f.node != nil {
			list.Items = append(list.Items, *f.node)
		}
		json.NewEncoder(w).Encode(list)
	case r.URL.Query().Get("sendInitialEvents") != "":
		f.fail(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
	case strings.HasSuffix(r.URL.Path, "/nodes"):
		f.watch(w, r)
	case r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/nodes/n/status"):
		f.patchNode(w, r, body)
	case strings.Contains(r.URL.Path, "/events"):
		f.event(w, r, body)
	default:
		f.fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func (f *fakeAPI) fail(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Code: int32(code)})
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request) {
	seen, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	stop := r.Context().Done()
	go func() { <-stop; f.cond.Broadcast() }()
	for {
		for f.version <= seen && !f.closed && !f.down && r.Context().Err() == nil {
			f.cond.Wait()
		}
		if f.closed || f.down || r.Context().Err() != nil {
			return
		}
		seen = f.version
		b, _ := json.Marshal(f.node)
		fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", b)
		w.(http.Flusher).Flush()
	}
}

func (f *fakeAPI) patchNode(w http.ResponseWriter, r *http.Request, body []byte) {
	if ct := r.Header.Get("Content-Type"); ct != string(types.StrategicMergePatchType) {
		f.t.Errorf("patch of type %s: only a strategic merge leaves the conditions of others alone", ct)
	}
	f.patches = append(f.patches, string(body))
	if err := f.apply(body, r.URL.Query().Get("fieldManager")); err != nil {
		f.t.Errorf("patch: %v", err)
	}
	json.NewEncoder(w).Encode(f.node)
}

// apply merges a patch as the API server does, and notes the manager.
func (f *fakeAPI) apply(body []byte, manager string) error {
	old, _ := json.Marshal(f.node)
	merged, err := strategicpatch.StrategicMergePatch(old, body, corev1.Node{})
	if err != nil {
		return err
	}
	var n corev1.Node
	if err := json.Unmarshal(merged, &n); err != nil {
		return err
	}
	var p struct {
		Status struct{ Conditions []struct{ Type string } }
	}
	json.Unmarshal(body, &p)
	conditions := map[string]any{}
	for _, c := range p.Status.Conditions {
		conditions[`k:{"type":"`+c.Type+`"}`] = map[string]any{"f:lastHeartbeatTime": map[string]any{}}
	}
	raw, _ := json.Marshal(map[string]any{"f:status": map[string]any{"f:conditions": conditions}})
	now := metav1.Now()
	n.ManagedFields = append([]metav1.ManagedFieldsEntry(nil), n.ManagedFields...)
	if len(conditions) > 0 {
		// The last writer owns the heartbeats of what it wrote, and nobody else does.
		n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, Operation: "Update", Time: &now, Subresource: "status", FieldsV1: metav1.NewFieldsV1(string(raw))}}
	}
	f.version++
	n.ResourceVersion = strconv.Itoa(f.version)
	f.node = &n
	f.cond.Broadcast()
	return nil
}

func (f *fakeAPI) event(w http.ResponseWriter, r *http.Request, body []byte) {
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	var e eventsv1.Event
	if r.Method == http.MethodPost {
		f.posts++
		if err := json.Unmarshal(body, &e); err != nil {
			f.t.Errorf("event: %v", err)
		}
		if f.events[e.Name] != nil {
			f.fail(w, http.StatusConflict, metav1.StatusReasonAlreadyExists)
			return
		}
		f.events[e.Name] = &e
		w.WriteHeader(http.StatusCreated)
		json.NewEncoder(w).Encode(e)
		return
	}
	have := f.events[name]
	if have == nil {
		f.fail(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	json.Unmarshal(body, have)
	json.NewEncoder(w).Encode(have)
}

// change edits the Node as somebody else.
func (f *fakeAPI) change(edit func(*corev1.Node)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.node.DeepCopy()
	edit(n)
	f.version++
	n.ResourceVersion = strconv.Itoa(f.version)
	f.node = n
	f.cond.Broadcast()
}

func (f *fakeAPI) setDown(down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = down
	f.cond.Broadcast()
}

// until waits for the condition to hold under the lock.
func (f *fakeAPI) until(what string, ok func() bool) {
	f.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		f.mu.Lock()
		done := ok()
		f.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("never happened: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (f *fakeAPI) get(t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range f.node.Status.Conditions {
		if f.node.Status.Conditions[i].Type == t {
			return &f.node.Status.Conditions[i]
		}
	}
	return nil
}
