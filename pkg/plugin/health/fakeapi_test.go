package health

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// fakeAPI is an API server with Nodes and Events, for what a real one cannot be asked
// to do: fail, be slow, be old. The screens are tested against a real one as well.
type fakeAPI struct {
	*httptest.Server
	mu      sync.Mutex
	nodes   []*corev1.Node
	events  []*corev1.Event
	pods    []*corev1.Pod
	changed chan struct{}
	asked   []string
	// before may answer a request in the server's place.
	before func(w http.ResponseWriter, r *http.Request) bool
}

func newFakeAPI(t *testing.T, nodes ...*corev1.Node) *fakeAPI {
	t.Helper()
	f := &fakeAPI{nodes: nodes, changed: make(chan struct{})}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	// Watches would keep Close waiting.
	t.Cleanup(f.CloseClientConnections)
	return f
}

// kubeconfig writes one that leads here.
func (f *fakeAPI) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\nusers: [{name: u, user: {token: t}}]\n", f.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// set puts a node in the place of the one with its name, and tells the watches.
func (f *fakeAPI) set(n *corev1.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.nodes {
		if f.nodes[i].Name == n.Name {
			f.nodes[i] = n
			close(f.changed)
			f.changed = make(chan struct{})
		}
	}
}

func (f *fakeAPI) requests() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, "\n")
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.URL.RequestURI())
	before := f.before
	f.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	q := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch path := r.URL.Path; {
	case path == "/api/v1/nodes" && q.Get("watch") != "":
		f.watch(w, r)
	case path == "/api/v1/nodes":
		selected := f.selected(q.Get("labelSelector"))
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, n := range selected {
			list.Items = append(list.Items, *n)
		}
		paged(&list, q.Get("limit"), q.Get("continue"))
		_ = json.NewEncoder(w).Encode(list)
	case strings.HasPrefix(path, "/api/v1/nodes/"):
		for _, n := range f.selected("") {
			if n.Name == strings.TrimPrefix(path, "/api/v1/nodes/") {
				_ = json.NewEncoder(w).Encode(n)
				return
			}
		}
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	case path == "/api/v1/namespaces/default/events" && q.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case path == "/api/v1/namespaces/default/events":
		sel, err := fields.ParseSelector(q.Get("fieldSelector"))
		if err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		list := corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, e := range f.events {
			if sel.Matches(fields.Set{"involvedObject.kind": e.InvolvedObject.Kind, "involvedObject.name": e.InvolvedObject.Name, "type": e.Type}) {
				list.Items = append(list.Items, *e)
			}
		}
		_ = json.NewEncoder(w).Encode(list)
	case path == "/api/v1/pods":
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
		for _, p := range f.pods {
			list.Items = append(list.Items, *p)
		}
		_ = json.NewEncoder(w).Encode(list)
	default:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "not found")
	}
}

func (f *fakeAPI) selected(selector string) []*corev1.Node {
	sel, err := labels.Parse(selector)
	if err != nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*corev1.Node
	for _, n := range f.nodes {
		if sel.Matches(labels.Set(n.Labels)) {
			out = append(out, n)
		}
	}
	return out
}

// watch tells all nodes and then that these were all, and all again after each change.
func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request) {
	send := func(kind string, obj any) {
		b, _ := json.Marshal(obj)
		fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, b)
	}
	kind := "ADDED"
	for {
		f.mu.Lock()
		changed := f.changed
		f.mu.Unlock()
		for _, n := range f.selected(r.URL.Query().Get("labelSelector")) {
			n = n.DeepCopy()
			n.ResourceVersion = "2"
			send(kind, n)
		}
		if kind == "ADDED" {
			send("BOOKMARK", &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: "2", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
		}
		kind = "MODIFIED"
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}

func paged(list *corev1.NodeList, limit, from string) {
	var n, start int
	_, _ = fmt.Sscan(limit, &n)
	_, _ = fmt.Sscan(from, &start)
	if n <= 0 || start+n >= len(list.Items) {
		list.Items = list.Items[start:]
		return
	}
	list.Items, list.Continue = list.Items[start:start+n], fmt.Sprint(start+n)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Reason: reason, Message: message, Code: int32(code)})
}

// eventually waits for what takes an unknown, short time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}
