package collect

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// thisMachine runs real programs: the shell is on every machine.
func thisMachine(t *testing.T) *host.Host {
	t.Helper()
	h, err := host.New("/")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func sh(path, script string) entry { return command(path, "sh", "-c", script) }

func TestHowCommandsEnd(t *testing.T) {
	table := category("Base",
		sh("ok", "echo hello"),
		sh("empty", ":"),
		sh("only stderr", "echo nothing to show >&2"),
		sh("fails", "echo partly; echo because >&2; exit 3"),
		sh("fails silently", "exit 4"),
		sh("says none", "echo no such thing >&2; exit 9").noneOn(9),
		command("missing", "no-such-program-anywhere"),
		firstCommand("second choice", []string{"no-such-program-anywhere"}, []string{"sh", "-c", "echo second"}),
		sh("deaf", "trap '' TERM INT HUP; echo before; while :; do sleep 1; done").within(300*time.Millisecond),
		sh("flood", "yes password=hunter2hunter2").max(64<<10),
		sh("secret in argv", "echo x # --token hunter2hunter2"),
		sequence("several", []string{"sh", "-c", "echo one"}, []string{"sh", "-c", "exit 1"}, []string{"no-such-program-anywhere"}),
		sequence("all fail", []string{"sh", "-c", "exit 1"}),
		sequence("all missing", []string{"no-such-program-anywhere"}),
		firstOf(file("fallback", "/no/such/file"), sh("", "exit 1"), sh("", "echo from the last")),
	)
	c := collectTest(t, Options{Host: thisMachine(t)}, table)
	for _, tc := range []struct {
		path   string
		status bundle.Status
		exit   int // -1: none
		text   string
		err    string
	}{
		{"ok", bundle.StatusOK, 0, "hello\n", ""},
		{"empty", bundle.StatusEmpty, 0, "", ""},
		{"only stderr", bundle.StatusOK, 0, "nothing to show\n", ""},
		{"fails", bundle.StatusFailed, 3, "partly\n", "because"},
		{"fails silently", bundle.StatusFailed, 4, "", "exit status 4"},
		{"says none", bundle.StatusAbsent, 9, "", "no such thing"},
		{"missing", bundle.StatusAbsent, -1, "", "not installed"},
		{"second choice", bundle.StatusOK, 0, "second\n", ""},
		{"deaf", bundle.StatusFailed, -1, "before\n", "ended after"},
		{"several", bundle.StatusOK, -1, "### sh -c echo one\none\n", ""},
		{"all fail", bundle.StatusFailed, -1, "### sh -c exit 1\n", "exit status 1"},
		{"all missing", bundle.StatusAbsent, -1, "", "not installed"},
		{"fallback", bundle.StatusOK, 0, "from the last\n", ""},
	} {
		it := c.item(t, tc.path)
		exit := -1
		if it.Exit != nil {
			exit = *it.Exit
		}
		if it.Status != tc.status || exit != tc.exit || !strings.Contains(it.Error, tc.err) || (tc.err == "") != (it.Error == "") {
			t.Errorf("%s: %s, exit %d, %q; want %s, %d, %q", tc.path, it.Status, exit, it.Error, tc.status, tc.exit, tc.err)
		}
		if (it.SHA256 != "") != (tc.text != "" || tc.status == bundle.StatusEmpty) {
			t.Errorf("%s: in the archive: %v", tc.path, it.SHA256 != "")
		} else if tc.text != "" && !strings.HasPrefix(c.text(t, tc.path), tc.text) {
			t.Errorf("%s: %q, want %q", tc.path, c.text(t, tc.path), tc.text)
		}
	}
	if it := c.item(t, "flood"); it.Status != bundle.StatusFailed || !it.Truncated || it.Bytes > 70<<10 || !strings.Contains(it.Error, "far more than is kept") {
		t.Errorf("flood: %+v", it)
	}
	if it := c.item(t, "secret in argv"); strings.Contains(strings.Join(it.Argv, " "), "hunter2") || len(it.Argv) != 3 {
		t.Errorf("argv: %q", it.Argv)
	}
	if it := c.item(t, "fallback"); it.Source != bundle.SourceCommand || it.From != "" {
		t.Errorf("fallback: %+v, want the source that was used", it)
	}
	grepAll(t, c.dir, "hunter2")
	if c.res.Failed != 5 || len(c.res.Errors) != 5 || c.res.Abandoned != 0 {
		t.Errorf("%+v", c.res)
	}
}

// A source that does not come back costs its own time, is counted and named, and
// what it writes later goes nowhere.
func TestASourceThatHangsIsAbandoned(t *testing.T) {
	release := make(chan struct{})
	returned := make(chan error, 1)
	hang := function("hangs", "", func(_ context.Context, _ *env, w io.Writer) error {
		_, _ = io.WriteString(w, "before\n")
		<-release
		_, err := io.WriteString(w, "after\n")
		returned <- err
		return nil
	}).within(50 * time.Millisecond)
	c := collectTest(t, Options{Host: newFixture(t).host()}, category("Base", hang))
	close(release)
	if err := <-returned; err == nil {
		t.Error("an abandoned source could still write")
	}
	it := c.item(t, "hangs")
	if it.Status != bundle.StatusFailed || !strings.Contains(it.Error, "abandoned") || c.text(t, "hangs") != "before\n" {
		t.Errorf("%+v", it)
	}
	if c.res.Abandoned != 1 || c.manifest.Abandoned != 1 || !strings.Contains(c.text(t, "errors.txt"), "hangs: did not end") {
		t.Errorf("not told of: %+v\n%s", c.res, c.text(t, "errors.txt"))
	}
}

func TestADefectOfOneSourceIsItsOwn(t *testing.T) {
	boom := function("boom", "", func(context.Context, *env, io.Writer) error { panic("oops") })
	c := collectTest(t, Options{Host: newFixture(t).host()}, category("Base", boom, file("os", "/etc/os-release")))
	if it := c.item(t, "boom"); it.Status != bundle.StatusFailed || !strings.Contains(it.Error, "oops") {
		t.Errorf("%+v", it)
	}
	if c.item(t, "os").Status != bundle.StatusOK {
		t.Error("the other item is not there")
	}
}

// When the time of the whole is over there is still a bundle, which says what is
// not in it.
func TestTheTotalTimeEndsInABundle(t *testing.T) {
	var table []entry
	for i := range 3 * laneWidth[laneCommand] {
		table = append(table, function(fmt.Sprintf("slow%d", i), "", func(ctx context.Context, _ *env, w io.Writer) error {
			_, _ = io.WriteString(w, "begun\n")
			<-ctx.Done()
			return ctx.Err()
		}))
	}
	c := collectTest(t, Options{Host: newFixture(t).host(), Timeout: 100 * time.Millisecond}, category("Base", table...))
	var late int
	for _, it := range c.manifest.Items {
		if strings.Contains(it.Error, errTotalTime.Error()) {
			late++
		}
	}
	if c.res.Failed != len(table) || late == 0 {
		t.Errorf("%d of %d failed, %d say why: %q", c.res.Failed, len(table), late, c.res.Errors)
	}
}

// What waits for the network does not hold up what reads files.
func TestLanesDoNotWaitForEachOther(t *testing.T) {
	filesDone := make(chan struct{})
	var table []entry
	for i := range laneWidth[laneNetwork] {
		table = append(table, function(fmt.Sprintf("probe%d", i), "", func(ctx context.Context, _ *env, w io.Writer) error {
			select {
			case <-filesDone:
			case <-ctx.Done():
				return ctx.Err()
			}
			_, err := io.WriteString(w, "ok")
			return err
		}).beside())
	}
	table = append(table, function("file", "", func(_ context.Context, _ *env, w io.Writer) error {
		close(filesDone)
		_, err := io.WriteString(w, "ok")
		return err
	}).in(laneFile))
	c := collectTest(t, Options{Host: newFixture(t).host()}, category("Base", table...))
	if c.res.OK != len(table) {
		t.Errorf("%d of %d: %q", c.res.OK, len(table), c.res.Errors)
	}
}

func TestProgressCountsEveryEntry(t *testing.T) {
	var seen []int
	opts := Options{Host: newFixture(t).host(), Progress: func(p Progress) {
		if p.Total != 3 || p.Path == "" {
			t.Errorf("%+v", p)
		}
		seen = append(seen, p.Done)
	}}
	collectTest(t, opts, category("Base", file("a", "/a"), file("b", "/etc/os-release"), sh("c", "x")))
	if !slices.Equal(seen, []int{1, 2, 3}) {
		t.Errorf("%v", seen)
	}
}
