package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

func TestNewClientAsksTheRightPath(t *testing.T) {
	var got string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.Path + " accept " + r.Header.Get("Accept")
		http.NotFound(w, r)
	}))
	defer srv.Close()
	cfg := &rest.Config{Host: srv.URL}

	core, err := NewClient(cfg, corev1.SchemeGroupVersion)
	if err != nil {
		t.Fatal(err)
	}
	core.Get().Resource("nodes").Name("a").Do(t.Context())
	if want := "/api/v1/nodes/a accept application/vnd.kubernetes.protobuf,application/json"; got != want {
		t.Errorf("core: got %q, want %q", got, want)
	}
	ours, err := NewClient(cfg, v1alpha1.GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	ours.Get().Resource(v1alpha1.Resource).Name("a").Do(t.Context())
	if want := "/apis/eks.amazonaws.com/v1alpha1/nodediagnostics/a accept application/json"; got != want {
		t.Errorf("ours: got %q, want %q", got, want)
	}
	if _, err := NewClient(cfg, metav1.SchemeGroupVersion); err == nil {
		t.Error("a client of an unknown group was made")
	}
}

func TestFollowTellsOfOneObjectFromAbsenceToDeletion(t *testing.T) {
	nd := func(rv string, gen int64) v1alpha1.NodeDiagnostic {
		return v1alpha1.NodeDiagnostic{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind},
			ObjectMeta: metav1.ObjectMeta{Name: "a", ResourceVersion: rv, Generation: gen},
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if sel := r.URL.Query().Get("fieldSelector"); sel != "metadata.name=a" {
			t.Errorf("field selector %q: the agent must watch its own object only", sel)
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("sendInitialEvents") != "": // as an API server without WatchList
			w.WriteHeader(http.StatusUnprocessableEntity)
			json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonInvalid, Code: 422})
		case r.URL.Query().Get("watch") == "":
			json.NewEncoder(w).Encode(v1alpha1.NodeDiagnosticList{
				TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "NodeDiagnosticList"},
				ListMeta: metav1.ListMeta{ResourceVersion: "1"},
			})
		default:
			for _, e := range []struct {
				kind string
				nd   v1alpha1.NodeDiagnostic
			}{{"ADDED", nd("2", 1)}, {"MODIFIED", nd("3", 2)}, {"DELETED", nd("4", 2)}} {
				b, _ := json.Marshal(e.nd)
				fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", e.kind, b)
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	defer srv.Close()
	client, err := NewClient(&rest.Config{Host: srv.URL}, v1alpha1.GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var got []string
	Follow(ctx, client, v1alpha1.Resource, "a", &v1alpha1.NodeDiagnostic{}, slog.New(slog.DiscardHandler), func(nd *v1alpha1.NodeDiagnostic) {
		if nd == nil {
			got = append(got, "none")
		} else {
			got = append(got, fmt.Sprintf("generation %d", nd.Generation))
		}
		if len(got) == 4 {
			cancel()
		}
	})
	if want := "none, generation 1, generation 2, none"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", strings.Join(got, ", "), want)
	}
}

func TestFollowSaysThatTheCRDIsMissing(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	client, err := NewClient(&rest.Config{Host: srv.URL}, v1alpha1.GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	said := &firstWrite{then: cancel}
	Follow(ctx, client, v1alpha1.Resource, "a", &v1alpha1.NodeDiagnostic{}, slog.New(slog.NewTextHandler(said, nil)), func(nd *v1alpha1.NodeDiagnostic) {
		t.Errorf("told of %v, though nothing is known", nd)
	})
	if !strings.Contains(said.text, "install the CustomResourceDefinition") {
		t.Errorf("said %q", said.text)
	}
}

// firstWrite keeps the first write and calls then.
type firstWrite struct {
	text string
	then func()
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.text == "" {
		w.text = string(p)
		w.then()
	}
	return len(p), nil
}

func TestLoadConfigNamesTheFileThatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(path, []byte("{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := LoadConfig(path, "test")
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v does not name %s", err, path)
	}
}

// The generated clientset is a matter of ten MiB a process.
func TestNoClientsetIsLinked(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command is not in PATH; it is asked what this package imports")
	}
	out, err := exec.Command(goTool, "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if strings.HasPrefix(dep, "k8s.io/client-go/kubernetes") {
			t.Errorf("links %s", dep)
		}
	}
}
