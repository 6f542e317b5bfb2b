package collect

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

func TestHostileFilesAreRefusedAndHarmless(t *testing.T) {
	f := newFixture(t)
	f.write("/etc/shadow", "root:topsecrethash\n")
	f.write("/var/log/aws-routed-eni/ok.log", "fine\n")
	pods := filepath.Join(f.root, "/var/log/pods/kube-system_aws-node-a_b/c")
	for _, err := range []error{
		os.Symlink("/etc/shadow", filepath.Join(f.root, "/var/log/messages")),
		os.Symlink("../../../etc/shadow", filepath.Join(f.root, "/var/log/aws-routed-eni/plugin.log")),
		unix.Mkfifo(filepath.Join(f.root, "/var/log/syslog"), 0o644),
		os.Mkdir(filepath.Join(f.root, "/var/log/cron"), 0o755),
		os.MkdirAll(filepath.Dir(pods), 0o755),
		os.Symlink("/etc", pods),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := collectTest(t, Options{Host: f.host(), Categories: []v1alpha1.LogCategory{"Base", "Networking"}}, fullTable())
	for path, words := range map[string]string{
		"var_log/messages":                   "symbolic link",
		"var_log/aws-routed-eni/plugin.log":  "symbolic link",
		"var_log/syslog":                     "not a regular file",
		"var_log/cron":                       "not a regular file",
		"var_log/kube-system_aws-node-a_b/c": "symbolic link",
	} {
		it := c.item(t, path)
		if it.Status != bundle.StatusFailed || !strings.Contains(it.Error, words) || it.SHA256 != "" {
			t.Errorf("%s: %s, %q, want failed: %s", path, it.Status, it.Error, words)
		}
		if !strings.Contains(c.text(t, "errors.txt"), path) {
			t.Errorf("errors.txt does not name %s", path)
		}
	}
	if c.item(t, "var_log/aws-routed-eni/ok.log").Status != bundle.StatusOK {
		t.Error("the good file beside them is not there")
	}
	grepAll(t, c.dir, "topsecrethash")
}

// Some images keep the logs of pods on another disk and link the folder itself.
// Links below it are refused all the same.
func TestPodLogsOnAnotherDiskAreFollowedOnce(t *testing.T) {
	f := newFixture(t)
	f.write("/etc/shadow", "topsecrethash")
	f.write("/data/pods/kube-system_coredns-a_b/c/0.log", "from the other disk\n")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(f.root, "/var/log"), 0o755),
		os.Symlink("/data/pods", filepath.Join(f.root, "/var/log/pods")),
		os.Symlink("/etc/shadow", filepath.Join(f.root, "/data/pods/kube-system_coredns-a_b/c/1.log")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	c := collectTest(t, Options{Host: f.host()}, fullTable())
	if got := c.text(t, "var_log/kube-system_coredns-a_b/c/0.log"); got != "from the other disk\n" {
		t.Errorf("%q", got)
	}
	if it := c.item(t, "var_log/kube-system_coredns-a_b/c/1.log"); it.Status != bundle.StatusFailed || !strings.Contains(it.Error, "symbolic link") {
		t.Errorf("%+v", it)
	}
	grepAll(t, c.dir, "topsecrethash")
}

// grepAll fails the test if a file below dir holds the word, also in gzip.
func grepAll(t *testing.T, dir, word string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if zr, zerr := gzip.NewReader(bytes.NewReader(b)); zerr == nil {
			if b, err = io.ReadAll(zr); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if bytes.Contains(b, []byte(word)) {
			t.Errorf("%s holds %q", path, word)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSecretsOfFilesAreRedactedAndCounted(t *testing.T) {
	const secret = "s3cr3tValue0123456789"
	f := newFixture(t)
	f.write("/var/lib/kubelet/kubeconfig", "users:\n- user:\n    token: "+secret+"\n    client-key-data: "+secret+"\n")
	f.write("/var/log/messages", strings.Repeat("x\n", 100_000)+"API_TOKEN="+secret+"\n\xff\xfe"+strings.Repeat("y", 1<<20)+" password="+secret+"\n")
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	_, werr := io.WriteString(zw, "kept text\nAuthorization: Bearer "+secret+"\n")
	if err := errors.Join(werr, zw.Close()); err != nil {
		t.Fatal(err)
	}
	f.write("/var/log/pods/kube-system_coredns-a_b/c/0.log.20260101.gz", zipped.String())
	extra := ExtraFile{Path: "api/node.json", Category: "System", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(`{"name":"x","password":"` + secret + `"}`)), nil
	}}
	c := collectTest(t, Options{Host: f.host(), Extra: []ExtraFile{extra}}, fullTable())
	grepAll(t, c.dir, secret)
	for path, want := range map[string]map[string]int{
		"kubelet/kubeconfig.yaml":                             {"token": 1, "kubeconfig": 1},
		"var_log/messages":                                    {"token": 1, "password": 1},
		"var_log/kube-system_coredns-a_b/c/0.log.20260101.gz": {"authorization": 1},
		"api/node.json":                                       {"password": 1},
	} {
		if it := c.item(t, path); fmt.Sprint(it.Redactions) != fmt.Sprint(want) {
			t.Errorf("%s: redactions %v, want %v", path, it.Redactions, want)
		}
	}
	if it := c.item(t, "api/node.json"); it.Source != bundle.SourceAPI || it.Status != bundle.StatusOK {
		t.Errorf("extra file: %+v", it)
	}
	if got := len(c.text(t, "var_log/messages")); got < 200_000+1<<20 {
		t.Errorf("%d bytes of messages are left", got)
	}
}
