package tail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a source over a root of its own.
type rig struct {
	t       *testing.T
	root    string
	source  *Source
	records chan host.Record
	stop    func()
}

// newRig runs a source until the test ends or stop is called.
func newRig(t *testing.T, root string, m memory, patterns ...string) *rig {
	t.Helper()
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, root: root, records: make(chan host.Record, 1000)}
	opts := Options{Name: "file", Host: h, Patterns: patterns}
	if m != nil {
		opts.Checkpoints = m
	}
	r.source = New(opts)
	ready := make(chan bool, 100)
	r.source.State().OnChange(func(host.SourceStatus) { ready <- true })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.source.Run(ctx, func(rec host.Record) error { r.records <- rec; return nil }) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(r.stop)
	<-ready // everything is watched
	return r
}

func (r *rig) path(name string) string { return filepath.Join(r.root, name) }

func (r *rig) write(name, text string) { appendTo(r.t, r.path(name), text) }

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// want waits for records with the messages given, and no others.
func (r *rig) want(messages ...string) []host.Record {
	r.t.Helper()
	var got []host.Record
	var texts []string
	for range messages {
		select {
		case rec := <-r.records:
			got, texts = append(got, rec), append(texts, rec.Message)
		case <-time.After(20 * time.Second):
			r.t.Fatalf("got %q, want %q; status %+v", texts, messages, r.source.Status())
		}
	}
	if d := cmp.Diff(messages, texts); d != "" {
		r.t.Fatal(d)
	}
	return got
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLinesComeWholeAsTheyAreWritten(t *testing.T) {
	root := t.TempDir()
	appendTo(t, filepath.Join(root, "var/log/cron"), "old\n")
	r := newRig(t, root, nil, "/var/log/cron")
	r.want("old")
	r.write("var/log/cron", "one\ntwo\nthr")
	r.want("one", "two")
	r.write("var/log/cron", "ee\n")
	got := r.want("three")
	if p := got[0].Position; !strings.HasSuffix(p, "/12") || got[0].Path != "/var/log/cron" || time.Since(got[0].At) > time.Minute {
		t.Errorf("record %+v, want one that begins at byte 12", got[0])
	}
}

func TestRotationByRenameLosesNothing(t *testing.T) {
	r := newRig(t, t.TempDir(), nil, "/var/log/x.log")
	r.write("var/log/x.log", "one\n")
	r.want("one")
	must(t, os.Rename(r.path("var/log/x.log"), r.path("var/log/x.log.1")))
	r.write("var/log/x.log.1", "two\n") // its writer has not noticed
	r.want("two")
	r.write("var/log/x.log", "three\n")
	r.want("three")
	r.write("var/log/x.log", "four\n")
	r.want("four")
}

func TestCopyTruncateBeginsAgainAndIsAnotherPosition(t *testing.T) {
	r := newRig(t, t.TempDir(), nil, "/var/log/x.log")
	r.write("var/log/x.log", strings.Repeat("a", 100)+"\n")
	first := r.want(strings.Repeat("a", 100))
	must(t, os.Truncate(r.path("var/log/x.log"), 0))
	r.write("var/log/x.log", "after truncate\n")
	second := r.want("after truncate")
	if first[0].Position == second[0].Position {
		t.Errorf("two records at %s", first[0].Position)
	}
}

func TestCopyTruncateIsSeenEvenWhenTheFileHasGrownBeyondTheOffset(t *testing.T) {
	root := t.TempDir()
	f := &file{}
	var err error
	appendTo(t, filepath.Join(root, "x"), "one\n")
	f.f, err = os.Open(filepath.Join(root, "x"))
	must(t, err)
	defer f.f.Close()
	var got []string
	read := func() {
		must(t, f.read(make([]byte, 64), func(_, _ int64, b []byte) error { got = append(got, string(b)); return nil }))
	}
	read()
	must(t, os.WriteFile(filepath.Join(root, "x"), []byte("another\nlonger\n"), 0o644))
	read()
	if d := cmp.Diff([]string{"one", "another", "longer"}, got); d != "" {
		t.Error(d)
	}
}

func TestFilesAndFoldersThatAppearLater(t *testing.T) {
	r := newRig(t, t.TempDir(), nil, "/var/log/pods/kube-system_aws-node-*/aws-node/*.log")
	if st := r.source.Status(); st.Up || st.Blind != "" || !st.Absent {
		t.Errorf("status %+v, want absent", st)
	}
	r.write("var/log/pods/kube-system_other/aws-node/0.log", "not ours\n")
	r.write("var/log/pods/kube-system_aws-node-abc/aws-node/0.log", "one\n")
	r.want("one")
	r.write("var/log/pods/kube-system_aws-node-abc/aws-node/1.log", "restarted\n")
	r.want("restarted")
	must(t, os.RemoveAll(r.path("var/log/pods/kube-system_aws-node-abc")))
	r.write("var/log/pods/kube-system_aws-node-def/aws-node/0.log", "new pod\n")
	r.want("new pod")
	if !r.source.Status().Up {
		t.Errorf("status %+v, want up", r.source.Status())
	}
}

func TestFolderThatIsDeletedAndMadeAgain(t *testing.T) {
	r := newRig(t, t.TempDir(), nil, "/var/log/aws-routed-eni/ipamd.log")
	r.write("var/log/aws-routed-eni/ipamd.log", "one\n")
	r.want("one")
	must(t, os.RemoveAll(r.path("var")))
	r.write("var/log/aws-routed-eni/ipamd.log", "two\n")
	r.want("two")
}

func TestLinksAreNotFollowed(t *testing.T) {
	root := t.TempDir()
	appendTo(t, filepath.Join(root, "etc/secret.log"), "secret\n")
	must(t, os.MkdirAll(filepath.Join(root, "var/log/pods"), 0o755))
	must(t, os.Symlink("/etc/secret.log", filepath.Join(root, "var/log/a.log")))
	must(t, os.Symlink("../../etc", filepath.Join(root, "var/log/linked")))
	must(t, os.Symlink("/etc", filepath.Join(root, "var/log/pods/linked")))
	r := newRig(t, root, nil, "/var/log/*.log", "/var/log/linked/*.log", "/var/log/pods/*/*.log")
	r.write("var/log/b.log", "fine\n")
	r.write("etc/secret.log", "more\n")
	r.write("var/log/b.log", "end\n")
	r.want("fine", "end")
}

func TestRestartGoesOnAtTheCheckpoint(t *testing.T) {
	root, m := t.TempDir(), memory{}
	r := newRig(t, root, m, "/var/log/x.log")
	r.write("var/log/x.log", "one\ntwo\nhal")
	r.want("one", "two")
	r.stop()
	appendTo(t, filepath.Join(root, "var/log/x.log"), "f\n")
	r = newRig(t, root, m, "/var/log/x.log")
	r.want("half")
}

func TestRestartReadsTheRestOfAFileThatWasRotatedMeanwhile(t *testing.T) {
	root, m := t.TempDir(), memory{}
	r := newRig(t, root, m, "/var/log/x.log")
	r.write("var/log/x.log", "one\n")
	r.want("one")
	r.stop()
	appendTo(t, r.path("var/log/x.log"), "two\n")
	must(t, os.Rename(r.path("var/log/x.log"), r.path("var/log/x.log-20261201")))
	appendTo(t, r.path("var/log/x.log"), "three\n")
	r = newRig(t, root, m, "/var/log/x.log")
	r.want("two", "three")
	if got := r.source.Status().Lost; got != 0 {
		t.Errorf("Lost = %d, want 0", got)
	}
	r.stop()
	appendTo(t, r.path("var/log/tmp"), "four\n")
	must(t, os.Rename(r.path("var/log/tmp"), r.path("var/log/x.log")))
	r = newRig(t, root, m, "/var/log/x.log")
	r.want("four")
	if got := r.source.Status().Lost; got != 1 {
		t.Errorf("Lost = %d, want 1 for a file that is gone", got)
	}
}

func TestRestartKnowsAFileThatGotTheInodeOfADeletedOne(t *testing.T) {
	root, m := t.TempDir(), memory{}
	r := newRig(t, root, m, "/x.log")
	r.write("x.log", "one\ntwo\n")
	r.want("one", "two")
	r.stop()
	must(t, os.WriteFile(r.path("x.log"), []byte("another file that is longer\n"), 0o644))
	r = newRig(t, root, m, "/x.log")
	r.want("another file that is longer")
}

func TestLineWithoutEndIsCutAndReadingGoesOnAtTheNext(t *testing.T) {
	r := newRig(t, t.TempDir(), nil, "/var/log/x.log")
	r.write("var/log/x.log", strings.Repeat("x", maxLine+5000)+"\nnext\n")
	if rec := <-r.records; rec.Message != strings.Repeat("x", maxLine) {
		t.Errorf("got %d bytes, want %d", len(rec.Message), maxLine)
	}
	r.want("next")
}

func TestFirstStartReadsTheEndOfAFileAndOnlyThisBoot(t *testing.T) {
	root := t.TempDir()
	now := time.Now()
	must(t, os.MkdirAll(filepath.Join(root, "proc"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "proc/stat"), fmt.Appendf(nil, "cpu 1\nbtime %d\n", now.Add(-time.Hour).Unix()), 0o644))
	old, recent := now.Add(-2*time.Hour).UTC().Format(time.RFC3339Nano), now.Add(-time.Minute).UTC().Format(time.RFC3339Nano)
	appendTo(t, filepath.Join(root, "x.log"), strings.Repeat(recent+" stdout F filler\n", firstRead/40))
	appendTo(t, filepath.Join(root, "x.log"), strings.Repeat("x", firstRead-500)+"\n")
	appendTo(t, filepath.Join(root, "x.log"), old+" stdout F last boot\n"+recent+" stdout F this boot\n"+`{"level":"error","ts":"`+old+`"}`+"\n")
	r := newRig(t, root, nil, "/x.log")
	for rec := range r.records {
		if strings.HasSuffix(rec.Message, "filler") {
			continue
		}
		if !strings.HasSuffix(rec.Message, "this boot") && len(rec.Message) < 1000 {
			t.Errorf("record %q", rec.Message)
		}
		if strings.HasSuffix(rec.Message, "this boot") {
			if rec.At.UTC().Format(time.RFC3339Nano) != recent {
				t.Errorf("dated %v, want %v", rec.At, recent)
			}
			break
		}
	}
	r.write("x.log", "end\n")
	r.want("end")
}

func TestHandlersErrorEndsRun(t *testing.T) {
	root, m := t.TempDir(), memory{}
	appendTo(t, filepath.Join(root, "x.log"), "one\n")
	h, err := host.New(root)
	must(t, err)
	want := errors.New("ledger is gone")
	err = New(Options{Name: "file", Host: h, Patterns: []string{"/x.log"}, Checkpoints: m}).
		Run(t.Context(), func(host.Record) error { return want })
	if !errors.Is(err, want) || len(m) != 0 {
		t.Errorf("Run = %v, checkpoints %v; want %v and none", err, m, want)
	}
}

func TestPatternsAreChecked(t *testing.T) {
	h, err := host.New(t.TempDir())
	must(t, err)
	for _, p := range []string{"relative/*.log", "/var/[", ""} {
		if err := New(Options{Name: "file", Host: h, Patterns: []string{p}}).Run(t.Context(), nil); err == nil {
			t.Errorf("pattern %q was taken", p)
		}
	}
}
