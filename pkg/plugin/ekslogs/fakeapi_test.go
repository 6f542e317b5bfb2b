package ekslogs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// fakeAPI is an API server that can be made to fail in ways that a real one cannot.
// What goes right is tested against a real one.
type fakeAPI struct {
	*httptest.Server
	mu      sync.Mutex
	nodes   map[string]*corev1.Node
	objects map[string]*v1alpha1.NodeDiagnostic
	files   map[string]file // by name below /var/log/support
	version int
	changed chan struct{} // closed at each change of an object
	asked   []string      // "METHOD path"
	// before may answer a request in the server's place.
	before func(w http.ResponseWriter, r *http.Request) bool
	// agent is called in a goroutine of its own for each object that is made.
	agent func(*v1alpha1.NodeDiagnostic)
}

type file struct {
	content  []byte
	modified time.Time
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	f := &fakeAPI{
		nodes:   map[string]*corev1.Node{},
		objects: map[string]*v1alpha1.NodeDiagnostic{},
		files:   map[string]file{},
		changed: make(chan struct{}),
	}
	f.agent = func(obj *v1alpha1.NodeDiagnostic) { f.complete(obj.Name, v1alpha1.ReasonSuccess, "all is well") }
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	// Watches would keep Close waiting.
	t.Cleanup(f.CloseClientConnections)
	return f
}

// kubeconfig writes one for the server and returns its path.
func (f *fakeAPI) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q}}],
users: [{name: u, user: {}}],
contexts: [{name: c, context: {cluster: c, user: u}}]}`, f.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// addNode adds a node that is Ready and has an agent with a fresh heartbeat, and
// gives it a bundle.
func (f *fakeAPI) addNode(name string, bundle []byte) *corev1.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := metav1.Now()
	n := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "a"}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: "KernelReady", Status: corev1.ConditionTrue, LastHeartbeatTime: now},
		}},
	}
	f.nodes[name] = n
	f.files[name+"-logs.tar.gz"] = file{bundle, time.Now().Add(-time.Minute)}
	return n
}

// update changes an object as its agent would.
func (f *fakeAPI) update(name string, change func(*v1alpha1.NodeDiagnostic)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if obj, ok := f.objects[name]; ok {
		change(obj)
		f.touch(obj)
	}
}

func (f *fakeAPI) complete(name, reason, message string) {
	f.update(name, func(obj *v1alpha1.NodeDiagnostic) {
		now := metav1.Now()
		obj.Status.SetCapture(v1alpha1.CaptureTypeLog, v1alpha1.CaptureState{Completed: &v1alpha1.CaptureStateCompleted{
			Reason: reason, Message: message, StartedAt: now, FinishedAt: now,
		}})
	})
}

func (f *fakeAPI) touch(obj *v1alpha1.NodeDiagnostic) {
	f.version++
	obj.ResourceVersion = strconv.Itoa(f.version)
	close(f.changed)
	f.changed = make(chan struct{})
}

// put makes an object that someone else has made.
func (f *fakeAPI) put(obj *v1alpha1.NodeDiagnostic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	obj.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind}
	f.version++
	obj.UID = types.UID("uid-" + strconv.Itoa(f.version))
	obj.Generation = max(obj.Generation, 1)
	if obj.CreationTimestamp.IsZero() {
		obj.CreationTimestamp = metav1.Now()
	}
	f.objects[obj.Name] = obj
	f.touch(obj)
}

func (f *fakeAPI) object(name string) *v1alpha1.NodeDiagnostic {
	f.mu.Lock()
	defer f.mu.Unlock()
	if obj, ok := f.objects[name]; ok {
		return obj.DeepCopy()
	}
	return nil
}

// requests returns those whose line has part in it.
func (f *fakeAPI) requests(part string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.asked), func(s string) bool { return !strings.Contains(s, part) })
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	before := f.before
	f.mu.Unlock()
	if before != nil && before(w, r) {
		return
	}
	const diagnostics = "/apis/eks.amazonaws.com/v1alpha1/nodediagnostics"
	path := r.URL.Path
	switch {
	case path == "/apis/eks.amazonaws.com/v1alpha1":
		answer(w, http.StatusOK, metav1.APIResourceList{})
	case strings.HasSuffix(path, "/selfsubjectaccessreviews"):
		answer(w, http.StatusCreated, map[string]any{"status": map[string]any{"allowed": true}})
	case path == "/api/v1/pods":
		answer(w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}})
	case path == "/api/v1/nodes":
		f.listNodes(w)
	case strings.Contains(path, "/proxy/logs/support/"):
		f.serveFile(w, r)
	case strings.HasPrefix(path, "/api/v1/nodes/"):
		f.getNode(w, strings.TrimPrefix(path, "/api/v1/nodes/"))
	case path == diagnostics && r.Method == http.MethodPost:
		f.create(w, r)
	case path == diagnostics:
		f.watch(w, r)
	case strings.HasPrefix(path, diagnostics+"/"):
		f.one(w, r, strings.TrimPrefix(path, diagnostics+"/"))
	default:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such path")
	}
}

func (f *fakeAPI) listNodes(w http.ResponseWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := corev1.NodeList{}
	for _, n := range f.nodes {
		list.Items = append(list.Items, *n)
	}
	answer(w, http.StatusOK, list)
}

func (f *fakeAPI) getNode(w http.ResponseWriter, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n, ok := f.nodes[name]; ok {
		answer(w, http.StatusOK, n)
		return
	}
	refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "nodes not found")
}

func (f *fakeAPI) serveFile(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	got, ok := f.files[filepath.Base(r.URL.Path)]
	f.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	http.ServeContent(w, r, "x.tar.gz", got.modified, bytes.NewReader(got.content))
}

func (f *fakeAPI) create(w http.ResponseWriter, r *http.Request) {
	obj := &v1alpha1.NodeDiagnostic{}
	if err := json.NewDecoder(r.Body).Decode(obj); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	if f.object(obj.Name) != nil {
		refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "already exists")
		return
	}
	f.put(obj)
	made := f.object(obj.Name)
	answer(w, http.StatusCreated, made)
	if f.agent != nil {
		go f.agent(made)
	}
}

func (f *fakeAPI) one(w http.ResponseWriter, r *http.Request, name string) {
	obj := f.object(name)
	if obj == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "nodediagnostics not found")
		return
	}
	if r.Method != http.MethodDelete {
		answer(w, http.StatusOK, obj)
		return
	}
	opts := &metav1.DeleteOptions{}
	if err := json.NewDecoder(r.Body).Decode(opts); err != nil || opts.Preconditions == nil || opts.Preconditions.UID == nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "deleted without a UID precondition")
		return
	}
	if *opts.Preconditions.UID != obj.UID {
		refuse(w, http.StatusConflict, metav1.StatusReasonConflict, "precondition failed")
		return
	}
	f.mu.Lock()
	delete(f.objects, name)
	f.mu.Unlock()
	answer(w, http.StatusOK, metav1.Status{Status: "Success"})
}

// watch sends what changes after the resource version that was asked for.
func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	seen, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for {
		f.mu.Lock()
		changed := f.changed
		obj := f.objects[name].DeepCopy()
		f.mu.Unlock()
		if obj != nil {
			if v, _ := strconv.Atoi(obj.ResourceVersion); v > seen {
				seen = v
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": obj})
			}
		}
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		}
	}
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	answer(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   "Failure", Code: int32(code), Reason: reason, Message: message,
	})
}
