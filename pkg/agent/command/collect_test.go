package command

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/collect"
	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// runCollect runs node-agent collect with arguments and returns what it wrote.
func runCollect(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := newCollectCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	cmd.SetArgs(args)
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(context.WithoutCancel(t.Context()))
	return out.String(), errOut.String(), err
}

// fileTree is a root directory with no programs.
func fileTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/hostname":     "tree-node\n",
		"etc/os-release":   "ID=amzn\n",
		"var/log/messages": "hello\n",
		"proc/meminfo":     "MemTotal: 1 kB\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestCollectMakesABundleAndPrintsItsPath(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct{ output, node, want string }{
		{dir, "", filepath.Join(dir, "tree-node-logs.tar.gz")},
		{filepath.Join(dir, "new", "folder"), "ip-10-0-0-1.ec2.internal", filepath.Join(dir, "new", "folder", "ip-10-0-0-1.ec2.internal-logs.tar.gz")},
		{filepath.Join(dir, "mine.tar.gz"), "", filepath.Join(dir, "mine.tar.gz")},
	} {
		args := []string{"-o", tc.output, "--root", fileTree(t), "--category", "base,System"}
		if tc.node != "" {
			args = append(args, "--node-name", tc.node)
		}
		out, errOut, err := runCollect(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		if out != tc.want+"\n" {
			t.Errorf("stdout %q, want %q", out, tc.want)
		}
		if !strings.Contains(errOut, "collected") || !strings.Contains(errOut, "entries,") || strings.Contains(errOut, "\x1b") {
			t.Errorf("stderr %q: want plain lines of progress and a summary", errOut)
		}
		f, err := os.Open(tc.want)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := bundle.Verify(f)
		if cerr := f.Close(); err != nil || cerr != nil {
			t.Fatal(err, cerr)
		}
		if got := strings.Join(rep.Manifest.Categories, " "); got != "Base System" {
			t.Errorf("categories %q", got)
		}
	}
}

func TestCollectDryRunPrintsTheTableAndWritesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	out, errOut, err := runCollect(t, "--dry-run", "--root", fileTree(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"CATEGORY", "var_log/messages", "6 B", "absent: dmesg: not installed on this host", "networking/iptables-save.txt"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%.3000s", want, out)
		}
	}
	if !strings.Contains(errOut, "entries") {
		t.Errorf("stderr %q", errOut)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("written: %v, %v", left, err)
	}
}

func TestCollectSaysWhatIsWrongWithItsFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"-o", nil},
		{"Base, Device, Networking, Runtime, System, All", []string{"-o", ".", "--category", "Disk"}},
		{"greater than zero", []string{"-o", ".", "--timeout", "-1s"}},
		{"greater than zero", []string{"-o", ".", "--since", "0s"}},
		{"--root", []string{"-o", ".", "--root", "/no/such/folder"}},
		{"--node-name", []string{"-o", ".", "--node-name", "../../etc/x"}},
		{"folder for the bundle", []string{"-o", filepath.Join(file, "b.tar.gz"), "--root", fileTree(t)}},
		{"unknown command", []string{"-o", ".", "extra"}},
	} {
		out, _, err := runCollect(t, tc.args...)
		if err == nil || !strings.Contains(err.Error(), tc.want) || out != "" {
			t.Errorf("%q: %v, want an error with %q", tc.args, err, tc.want)
		}
	}
}

func TestByteSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 16 << 20: "16.0 MiB", 3 << 40: "3.0 TiB", 5 << 50: "5120.0 TiB"} {
		if got := byteSize(n); got != want {
			t.Errorf("byteSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestProgressLineOnNoTerminalIsALineATenth(t *testing.T) {
	var b bytes.Buffer
	p := newProgressLine(&b)
	for i := range 100 {
		p.show(collect.Progress{Done: i + 1, Total: 100, Path: "x", Bytes: 1})
	}
	p.end()
	if n := strings.Count(b.String(), "\n"); n != 10 {
		t.Errorf("%d lines:\n%s", n, b.String())
	}
}
