package ekslogs

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

func theirs(name string) *v1alpha1.NodeDiagnostic {
	return &v1alpha1.NodeDiagnostic{
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			CreationTimestamp: metav1.NewTime(time.Now().Add(-3 * time.Hour)),
			ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "kubectl-client-side-apply", Operation: "Update"}},
		},
		Spec: v1alpha1.NodeDiagnosticSpec{LogCapture: &v1alpha1.LogCapture{Destination: "node"}},
	}
}

func TestAnObjectOfSomeoneElseIsLeftAlone(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	api.put(theirs("a"))
	before := api.object("a")
	plugin(t, api, "a").want(t, exitSomeFailed, "made 3h ago by kubectl-client-side-apply", "--attach", "--replace", "not begun")
	if after := api.object("a"); after == nil || after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was touched: %v", after)
	}
}

func TestAnObjectOfAColleagueNamesThem(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	obj := newRequest(&Options{}, "a")
	obj.Annotations[requestedByAnnotation] = "alice@laptop"
	api.put(obj)
	plugin(t, api, "a").want(t, exitSomeFailed, "by alice@laptop with kubectl-ekslogs")
}

func TestAttachTakesTheBundleAndLeavesTheObject(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	api.put(theirs("a"))
	api.complete("a", "Success", "")
	plugin(t, api, "a", "--attach").want(t, exitOK)
	if api.object("a") == nil {
		t.Error("it was deleted")
	}
}

func TestAttachRefusesABundleThatGoesElsewhere(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	obj := theirs("a")
	obj.Spec.LogCapture.Destination = "https://bucket.example/x?X-Amz-Signature=secret"
	api.put(obj)
	got := plugin(t, api, "a", "--attach")
	got.want(t, exitSomeFailed, "nothing to attach to")
	if strings.Contains(got.err, "secret") {
		t.Errorf("the signature was told: %s", got.err)
	}
}

func TestReplaceStartsAnew(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	api.put(theirs("a"))
	old := api.object("a").UID
	plugin(t, api, "a", "--replace", "--keep").want(t, exitOK)
	if got := api.object("a"); got == nil || got.UID == old || got.Labels[managedByLabel] != managedByValue {
		t.Errorf("it is still theirs: %v", got)
	}
}

func TestAnObjectMadeAnewMeanwhileIsNotOurs(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	api.agent = func(*v1alpha1.NodeDiagnostic) { api.put(theirs("a")) }
	plugin(t, api, "a").want(t, exitSomeFailed, "made anew by someone")
	if got := api.object("a"); got == nil || got.Labels[managedByLabel] != "" {
		t.Error("the clean-up deleted an object that was not ours")
	}
}

func TestAnOlderGenerationsCompletionIsNotTakenForOurs(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	api.agent = func(*v1alpha1.NodeDiagnostic) {
		set := func(generation int64, reason string) func(*v1alpha1.NodeDiagnostic) {
			return func(obj *v1alpha1.NodeDiagnostic) {
				obj.Generation = 2
				obj.Status.SetCapture(v1alpha1.CaptureTypeLog, v1alpha1.CaptureState{Completed: &v1alpha1.CaptureStateCompleted{
					Reason: reason, ObservedGeneration: generation,
				}})
			}
		}
		api.update("a", set(1, v1alpha1.ReasonFailure))
		api.update("a", set(2, v1alpha1.ReasonSuccess))
	}
	plugin(t, api, "a").want(t, exitOK)
}

func TestWatchesThatEndAndExpireLoseNothing(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	api.agent = func(*v1alpha1.NodeDiagnostic) {}
	var watches atomic.Int32
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		switch watches.Add(1) {
		case 1: // ends at once
			answer(w, http.StatusOK, nil)
		case 2: // expired, as an event
			answer(w, http.StatusOK, map[string]any{"type": "ERROR", "object": metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure",
				Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version"}})
		case 3: // expired, as an answer
			refuse(w, http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
		case 4: // an API server that restarts; the capture ends meanwhile
			api.complete("a", "Success", "")
			panic(http.ErrAbortHandler)
		default:
			return false
		}
		return true
	}
	plugin(t, api, "a").want(t, exitOK)
	if n := watches.Load(); n < 4 {
		t.Errorf("%d watches: it gave up early", n)
	}
}

func TestWithoutTheRightToWatchItReadsAgainAndAgain(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") != "" {
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, `User "dev" cannot watch resource "nodediagnostics"`)
			return true
		}
		return false
	}
	plugin(t, api, "a").want(t, exitOK)
}

func TestALostAnswerToTheCreationIsNotTakenForSomeoneElses(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	var posts atomic.Int32
	api.before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/nodediagnostics") || posts.Add(1) > 1 {
			return false
		}
		obj := &v1alpha1.NodeDiagnostic{}
		if err := json.NewDecoder(r.Body).Decode(obj); err != nil {
			t.Error(err)
		}
		api.put(obj)
		go api.complete("a", "Success", "")
		panic(http.ErrAbortHandler)
	}
	plugin(t, api, "a").want(t, exitOK)
	if api.object("a") != nil {
		t.Error("the NodeDiagnostic was left behind")
	}
}
