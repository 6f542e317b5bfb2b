package capture

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// fakeAPI serves one NodeDiagnostic as an API server does: list, watch, get, and
// update of the status with optimistic locking. It keeps the first bytes of what it
// is told about the rest of a cluster: nothing.
type fakeAPI struct {
	url string

	mu      sync.Mutex
	object  *v1alpha1.NodeDiagnostic
	version int
	uids    int
	changed chan struct{} // closed and replaced at each change
	events  []metav1.WatchEvent
	refuse  int // so many status updates are answered with 503
	history []string
}

func newFakeAPI(t *testing.T) *fakeAPI {
	f := &fakeAPI{changed: make(chan struct{}), version: 1}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	f.url = srv.URL
	return f
}

// put stores nd, or deletes the object when nd is nil.
func (f *fakeAPI) put(kind string, nd *v1alpha1.NodeDiagnostic) {
	f.version++
	told := nd
	if nd == nil {
		told = f.object
	}
	told.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind}
	told.ResourceVersion = strconv.Itoa(f.version)
	e := metav1.WatchEvent{Type: kind}
	e.Object.Raw, _ = json.Marshal(told)
	f.events = append(f.events, e)
	f.object = nd
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeAPI) create(spec v1alpha1.NodeDiagnosticSpec) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.uids++
	nd := &v1alpha1.NodeDiagnostic{Spec: spec}
	nd.Name, nd.Generation, nd.UID = "n", 1, types.UID(fmt.Sprint("uid", f.uids))
	f.put("ADDED", nd)
}

func (f *fakeAPI) edit(change func(*v1alpha1.NodeDiagnostic)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	nd := f.object.DeepCopy()
	nd.Generation++
	change(nd)
	f.put("MODIFIED", nd)
}

func (f *fakeAPI) delete() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.put("DELETED", nil)
}

// log returns what became of the log capture so far, nil when nothing.
func (f *fakeAPI) log() *v1alpha1.CaptureState {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.object == nil {
		return nil
	}
	if c := f.object.Status.Capture(v1alpha1.CaptureTypeLog); c != nil {
		return &c.State
	}
	return nil
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("watch") != "" {
		f.watch(w, r)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/apis/eks.amazonaws.com/v1alpha1/nodediagnostics")
	gr := schema.GroupResource{Group: "eks.amazonaws.com", Resource: "nodediagnostics"}
	switch {
	case path == r.URL.Path:
		answer(w, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", nil))
	case path == "":
		list := v1alpha1.NodeDiagnosticList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "NodeDiagnosticList"}}
		list.ResourceVersion = strconv.Itoa(f.version)
		if f.object != nil {
			list.Items = append(list.Items, *f.object)
		}
		_ = json.NewEncoder(w).Encode(list)
	case f.object == nil:
		answer(w, apierrors.NewNotFound(gr, "n"))
	case r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(f.object)
	case r.Method == http.MethodPut && path == "/n/status":
		var nd v1alpha1.NodeDiagnostic
		_ = json.NewDecoder(r.Body).Decode(&nd)
		switch {
		case f.refuse > 0:
			f.refuse--
			answer(w, apierrors.NewServiceUnavailable("etcd is away"))
		case nd.ResourceVersion != f.object.ResourceVersion:
			answer(w, apierrors.NewConflict(gr, "n", nil))
		default:
			stored := f.object.DeepCopy()
			stored.Status = nd.Status
			f.put("MODIFIED", stored)
			f.history = append(f.history, story(stored))
			_ = json.NewEncoder(w).Encode(stored)
		}
	default:
		http.NotFound(w, r)
	}
}

// story says a status in a few words.
func story(nd *v1alpha1.NodeDiagnostic) string {
	var words []string
	for _, c := range nd.Status.CaptureStatuses {
		if c.State.Running != nil {
			words = append(words, fmt.Sprintf("%s running", c.Type))
		} else {
			words = append(words, fmt.Sprintf("%s %s of %d", c.Type, c.State.Completed.Reason, c.State.Completed.ObservedGeneration))
		}
	}
	return fmt.Sprintf("%s: %s", nd.UID, strings.Join(words, ", "))
}

func answer(w http.ResponseWriter, err *apierrors.StatusError) {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.WriteHeader(int(s.Code))
	_ = json.NewEncoder(w).Encode(s)
}

func (f *fakeAPI) watch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("sendInitialEvents") != "" { // as a server without WatchList
		answer(w, apierrors.NewInvalid(schema.GroupKind{}, "", nil))
		return
	}
	f.mu.Lock()
	next := len(f.events)
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	for next > 0 && since < f.version-(len(f.events)-next) {
		next--
	}
	f.mu.Unlock()
	for {
		f.mu.Lock()
		events, changed := f.events[next:], f.changed
		next = len(f.events)
		f.mu.Unlock()
		for _, e := range events {
			_ = json.NewEncoder(w).Encode(e)
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
