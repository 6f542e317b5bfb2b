package ekslogs

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
)

// call runs the plugin against the API, in a folder of its own unless -d is given.
type call struct {
	code     int
	out, err string
	dir      string
}

func plugin(t *testing.T, api *fakeAPI, args ...string) call {
	t.Helper()
	return pluginContext(t.Context(), t, api, args...)
}

func pluginContext(ctx context.Context, t *testing.T, api *fakeAPI, args ...string) call {
	t.Helper()
	dir := t.TempDir()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}
	all := []string{"--kubeconfig", api.kubeconfig(t)}
	if !strings.Contains(" "+strings.Join(args, " "), " -d ") {
		all = append(all, "-d", dir)
	}
	code := Run(ctx, append(all, args...), nil, streams)
	return call{code: code, out: out.String(), err: errOut.String(), dir: dir}
}

func (c call) want(t *testing.T, code int, inErr ...string) {
	t.Helper()
	if c.code != code {
		t.Errorf("exit code %d, want %d\n%s%s", c.code, code, c.out, c.err)
	}
	for _, s := range inErr {
		if !strings.Contains(c.err, s) {
			t.Errorf("stderr does not say %q:\n%s", s, c.err)
		}
	}
}

// files lists what is in a folder.
func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestABundleComesHomeAndNothingStaysBehind(t *testing.T) {
	api := newFakeAPI(t)
	want := ourBundle(t, "kernel: all is well\n")
	api.addNode("a", want)
	got := plugin(t, api, "a", "-o", "json")
	got.want(t, exitOK, "1 of 2 items failed")
	var list BundleList
	if err := json.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatalf("%v in %s", err, got.out)
	}
	r := list.Items[0]
	if list.Kind != "BundleList" || r.State != StateSuccess || r.Verified != "manifest" || r.AgentVersion != "v9.1.0" || *r.Errors != 1 || r.Failed[0].Path != "gpu/nvidia-smi.txt" {
		t.Errorf("result: %s", got.out)
	}
	if !bytes.Equal(read(t, filepath.Join(got.dir, "a-logs.tar.gz")), want) {
		t.Error("the file is not what the node has")
	}
	if info, err := os.Stat(r.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: %v, %v", info.Mode(), err)
	}
	if f := files(t, got.dir); f != "a-logs.tar.gz" {
		t.Errorf("folder: %s", f)
	}
	if api.object("a") != nil {
		t.Error("the NodeDiagnostic was left behind")
	}
}

func TestABundleWithoutAManifestIsReadThroughAllTheSame(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	got := plugin(t, api, "a", "-o", "wide")
	got.want(t, exitOK)
	fields := strings.Fields(strings.Split(got.out, "\n")[1])
	if fields[0] != "a" || fields[1] != "Success" || !strings.Contains(got.out, " archive ") {
		t.Errorf("table:\n%s", got.out)
	}
}

func TestAFailedNodeNeverStopsTheRest(t *testing.T) {
	api := newFakeAPI(t)
	for _, n := range []string{"a", "b", "c"} {
		api.addNode(n, foreignBundle(t))
	}
	api.files["b-logs.tar.gz"] = file{[]byte("no archive at all"), time.Now()}
	got := plugin(t, api, "--all", "-q")
	got.want(t, exitSomeFailed, "b: what the node sent is not a whole bundle")
	if want := filepath.Join(got.dir, "a-logs.tar.gz") + "\n" + filepath.Join(got.dir, "c-logs.tar.gz") + "\n"; got.out != want {
		t.Errorf("stdout %q, want %q", got.out, want)
	}
	if f := files(t, got.dir); f != "a-logs.tar.gz c-logs.tar.gz" {
		t.Errorf("folder: %s", f)
	}
	for _, n := range []string{"a", "b", "c"} {
		if api.object(n) != nil {
			t.Errorf("the NodeDiagnostic %s was left behind", n)
		}
	}
}

func TestAnExistingFileIsNotOverwrittenUnasked(t *testing.T) {
	api := newFakeAPI(t)
	fresh := foreignBundle(t)
	api.addNode("a", fresh)
	dir := t.TempDir()
	path := filepath.Join(dir, "a-logs.tar.gz")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin(t, api, "a", "-d", dir).want(t, exitSomeFailed, "is here already", "--clobber", "--skip-existing")
	skipped := plugin(t, api, "a", "-d", dir, "--skip-existing")
	skipped.want(t, exitOK)
	if !strings.Contains(skipped.out, "Skipped") {
		t.Errorf("table:\n%s", skipped.out)
	}
	if asked := api.requests("POST /apis/eks"); len(asked) != 0 {
		t.Errorf("the node was made to collect for nothing: %v", asked)
	}
	if string(read(t, path)) != "old" {
		t.Error("the file was touched")
	}
	plugin(t, api, "a", "-d", dir, "--clobber").want(t, exitOK)
	if !bytes.Equal(read(t, path), fresh) {
		t.Error("--clobber did not overwrite")
	}
}

func TestAFailedDownloadLeavesTheOldFileAlone(t *testing.T) {
	api := newFakeAPI(t)
	whole := foreignBundle(t)
	api.addNode("a", whole[:len(whole)-6])
	dir := t.TempDir()
	path := filepath.Join(dir, "a-logs.tar.gz")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	plugin(t, api, "a", "-d", dir, "--clobber").want(t, exitSomeFailed, "not a whole bundle")
	if string(read(t, path)) != "old" || files(t, dir) != "a-logs.tar.gz" {
		t.Errorf("folder: %s", files(t, dir))
	}
}

func TestCtrlCCleansUpWhatIsOurs(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	ctx, cancel := context.WithCancelCause(t.Context())
	// The agent never ends.
	api.agent = func(*v1alpha1.NodeDiagnostic) { cancel(errInterrupted) }
	got := pluginContext(ctx, t, api, "a")
	got.want(t, exitInterrupted, "interrupted")
	if api.object("a") != nil {
		t.Error("the NodeDiagnostic was left behind")
	}
	if f := files(t, got.dir); f != "" {
		t.Errorf("folder: %s", f)
	}
}

func TestKeepLeavesTheRequest(t *testing.T) {
	api := newFakeAPI(t)
	api.addNode("a", foreignBundle(t))
	plugin(t, api, "a", "--keep", "--since", "7d", "--category", "runtime,NETWORKING").want(t, exitOK)
	obj := api.object("a")
	if obj == nil {
		t.Fatal("it was deleted")
	}
	if got := obj.Annotations["ekslogs.io/since"]; got != "168h0m0s" {
		t.Errorf("since: %q", got)
	}
	if c := obj.Spec.LogCapture.Categories; len(c) != 2 || c[0] != "Runtime" || c[1] != "Networking" {
		t.Errorf("categories: %v", c)
	}
	if obj.Labels["app.kubernetes.io/managed-by"] != "kubectl-ekslogs" {
		t.Errorf("labels: %v", obj.Labels)
	}
}

func TestSkewOfVersionsIsAMinorReleaseApart(t *testing.T) {
	for _, tc := range []struct {
		client, agent string
		want          bool
	}{
		{"v1.2.0", "v1.2.9", false},
		{"v1.2.0", "v1.3.0", true},
		{"v1.2.0", "v2.2.0", true},
		{"dev", "v1.3.0", false},
		{"v1.2.0", "", false},
	} {
		if got := skewed(tc.client, tc.agent); got != tc.want {
			t.Errorf("skewed(%q, %q) = %v", tc.client, tc.agent, got)
		}
	}
}
