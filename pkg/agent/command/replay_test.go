package command

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// detectData is where the texts lie that the detectors are tested with.
const detectData = "../../health/detect/testdata/"

// replayText runs "node-agent replay -o json" over a text and returns what it printed.
func replayText(t testing.TB, text string, flags ...string) []replayLine {
	t.Helper()
	var out, errOut bytes.Buffer
	root := New(genericiooptions.IOStreams{In: strings.NewReader(text), Out: &out, ErrOut: &errOut})
	root.SetArgs(append([]string{"replay", "-o", "json", "-"}, flags...))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("replay %q: %v\n%s", flags, err, errOut.String())
	}
	var lines []replayLine
	for l := range strings.Lines(out.String()) {
		var line replayLine
		dec := json.NewDecoder(strings.NewReader(l))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&line); err != nil {
			t.Fatalf("%q: %v", l, err)
		}
		lines = append(lines, line)
	}
	return lines
}

// loud returns what is worth more than Info.
func loud(lines []replayLine) []replayLine {
	return slices.DeleteFunc(slices.Clone(lines), func(l replayLine) bool { return l.Severity == "Info" })
}

func TestReplayFindsEachKindInAllItsWordings(t *testing.T) {
	data, err := os.ReadFile(detectData + "kinds.txt")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split("\n"+string(data), "\n== ")[1:]
	for _, block := range blocks {
		head, text, _ := strings.Cut(block, "\n")
		parts := strings.Split(head, "|")
		if len(parts) != 3 {
			t.Fatalf("%q: want name | flags | findings", head)
		}
		text = repeated(t, text)
		t.Run(strings.TrimSpace(parts[0]), func(t *testing.T) {
			var got []string
			for _, l := range loud(replayText(t, text, strings.Fields(parts[1])...)) {
				got = append(got, fmt.Sprintf("%s[%s]=%s", l.Reason, l.Subject, l.Severity))
			}
			if got, want := strings.Join(got, " "), strings.TrimSpace(parts[2]); got != want {
				t.Errorf("found %q, want %q\n%s", got, want, text)
			}
		})
	}
}

// repeated writes out lines of the form "@repeat N TEXT".
func repeated(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(text) {
		var n int
		rest, ok := strings.CutPrefix(line, "@repeat ")
		if !ok {
			b.WriteString(line)
			continue
		}
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		_, rest, _ = strings.Cut(rest, " ")
		b.WriteString(strings.Repeat(rest, n))
	}
	return b.String()
}

func TestReplayLineNumbersAndTimes(t *testing.T) {
	got := replayText(t, "[Mon Aug  5 03:54:12 2024] eth0: link up\n[Mon Aug  5 03:54:13 2024] VFS: file-max limit 1000 reached\n")
	if len(got) != 1 || got[0].Line != 2 || got[0].At != "2024-08-05T03:54:13Z" || got[0].Origin != "kernel" {
		t.Errorf("got %+v", got)
	}
}

func TestReplaySurvivesHostileText(t *testing.T) {
	fault := "VFS: file-max limit 1000 reached"
	for name, text := range map[string]string{
		"no newline at the end":   fault,
		"carriage returns":        "x\r\n" + fault + "\r\n",
		"NUL and invalid UTF-8":   "\x00\xff\xfe\n" + fault + "\n",
		"a line of 1 MiB":         strings.Repeat("a", 1<<20) + "\n" + fault + "\n",
		"a line of 3 MiB":         strings.Repeat("b", 3<<20) + "\n" + fault + "\n",
		"empty lines":             "\n\n\n" + fault + "\n\n",
		"a broken record":         "6,,,;\n6,1,2,-;\n" + fault + "\n",
		"broken JSON":             `{"MESSAGE":` + "\n" + fault + "\n",
		"continuation of nothing": "      x=y\n" + fault + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			if got := replayText(t, text); len(got) != 1 || got[0].Reason != "FileHandlesExhausted" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestReplayAllTellsEveryFinding(t *testing.T) {
	text := strings.Repeat("nf_conntrack: table full, dropping packet\n", 3)
	if n := len(replayText(t, text)); n != 1 {
		t.Errorf("%d lines, want the incident once", n)
	}
	if n := len(replayText(t, text, "--all")); n != 3 {
		t.Errorf("--all: %d lines, want 3", n)
	}
}

func TestReplayTrustsUserspaceOnlyWhenTold(t *testing.T) {
	const text = "12,1,2,-;EXT4-fs (nvme0n1p1): Remounting filesystem read-only\n"
	if got := replayText(t, text); len(got) != 1 || got[0].Severity != "Warning" || got[0].Origin != "userspace" {
		t.Errorf("got %+v", got)
	}
	if got := replayText(t, text, "--trust-userspace"); len(got) != 1 || got[0].Severity != "Fatal" {
		t.Errorf("trusted: got %+v", got)
	}
}

func TestReplayRefusesFlagsThatDoNotGoTogether(t *testing.T) {
	for _, args := range [][]string{
		{"--source", "dmesg"}, {"--unit", "kubelet"}, {"--path", "/x"}, {"-o", "yaml"},
	} {
		root := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
		root.SetArgs(append([]string{"replay", "-"}, args...))
		if err := root.ExecuteContext(t.Context()); err == nil {
			t.Errorf("replay %q: no error", args)
		}
	}
}

func TestReplayTellsWhileThePipeIsOpen(t *testing.T) {
	in, write := io.Pipe()
	read, out := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	root := New(genericiooptions.IOStreams{In: in, Out: out, ErrOut: io.Discard})
	root.SetArgs([]string{"replay", "-o", "json", "-"})
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()

	lines := bufio.NewScanner(read)
	for _, text := range []string{
		"VFS: file-max limit 7 reached\n",                                      // told at once
		"[   12.345678] INFO: rcu_sched detected stalls on CPUs/tasks: { 0}\n", // waits for more lines, for a moment
	} {
		if _, err := io.WriteString(write, text); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() {
			t.Fatalf("nothing is told of %q: %v", text, lines.Err())
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("replay ended with %v", err)
	}
	write.Close()
}

func TestReplayOfABundleReadsItsLogs(t *testing.T) {
	name := filepath.Join(t.TempDir(), "node-a-logs.tar.gz")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, file := range []struct{ name, text string }{
		{"./kernel/dmesg.current", "[ 1.5] VFS: file-max limit 7 reached\n"},
		{"./kernel/dmesg.human.current", "[Mon Aug  5 03:54:13 2024] VFS: file-max limit 7 reached\n"},
		{"./kubelet/kubelet.log", "2024-10-01T11:34:07.899178+0000 node-a kubelet[1914]: PLEG is not healthy: pleg was last seen active 4m1s ago; threshold is 3m0s\n"},
		{"./var_log/aws-routed-eni/ipamd.log", "{\"level\":\"error\",\"msg\":\"InsufficientCidrBlocks\"}\n"},
		{"./system/ps.txt", "VFS: file-max limit 7 reached\n"},
	} {
		if err := w.WriteHeader(&tar.Header{Name: file.name, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(file.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, file.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}

	var out bytes.Buffer
	root := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard})
	root.SetArgs([]string{"replay", "-o", "json", "--all", name})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for l := range strings.Lines(out.String()) {
		var line replayLine
		if err := json.Unmarshal([]byte(l), &line); err != nil {
			t.Fatal(err)
		}
		got = append(got, line.Reason+" "+line.File)
	}
	want := []string{
		"FileHandlesExhausted kernel/dmesg.human.current",
		"PLEGUnhealthy kubelet/kubelet.log",
		"IPAMDNoIPs var_log/aws-routed-eni/ipamd.log",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestReplayReadsWhatLogrotateCompressed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "messages-20260101.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, werr := z.Write([]byte("VFS: file-max limit 1000 reached\n"))
	if err := errors.Join(werr, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	root := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard})
	root.SetArgs([]string{"replay", "-o", "json", path})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "FileHandlesExhausted") {
		t.Errorf("got %q", out.String())
	}
}
