package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
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
