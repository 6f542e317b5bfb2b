package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// execute runs node-agent with the arguments.
func execute(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

func TestTheReasonsPageIsUpToDate(t *testing.T) {
	out, _, err := execute(t, "reasons", "-o", "md")
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != out {
		t.Error(`docs/reasons.md is not what "node-agent reasons -o md" prints; run it again`)
	}
}

func TestAReasonIsExplainedByTheCodeOnTheNode(t *testing.T) {
	out, _, err := execute(t, "reasons", "NvidiaXID79Error")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"NvidiaXID{N}Error (Fatal, AcceleratedHardwareReady)", "What to do:", "Cleared by:  a reboot, or the driver's own all-clear"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	out, _, err = execute(t, "reasons", "-o", "json")
	var pages []reasonPage
	if err != nil || json.Unmarshal([]byte(out), &pages) != nil || len(pages) != len(health.NewCatalog().Reasons()) {
		t.Errorf("json: %d pages, %v", len(pages), err)
	}
	if _, _, err := execute(t, "reasons", "Nonsense"); err == nil || !strings.Contains(err.Error(), "node-agent reasons") {
		t.Errorf("unknown reason: %v", err)
	}
}

func TestConfigValidateNamesTheLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	write := func(s string) {
		if err := os.WriteFile(path, []byte("apiVersion: ekslogs.io/v1alpha1\nkind: NodeAgentConfig\n"+s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("reasons:\n  KernelOps: {disabled: true}\n")
	out, errOut, err := execute(t, "config", "validate", path)
	if err != nil || !strings.Contains(out, "is good") || !strings.Contains(errOut, "KernelOps") {
		t.Errorf("%q, %q, %v", out, errOut, err)
	}
	write("reason: {}\n")
	if _, _, err := execute(t, "config", "validate", path); err == nil || !strings.Contains(err.Error(), "line 3") {
		t.Errorf("%v", err)
	}
	if _, _, err := execute(t, "config", "validate", path+".none"); err == nil {
		t.Error("a file that does not exist is called good")
	}
}

func TestWhatIsInjectedIsFoundAsWhatItSays(t *testing.T) {
	catalog := health.NewCatalog()
	if codes := injectable(catalog); len(codes) < 20 {
		t.Errorf("only %d reasons can be injected: %v", len(codes), codes)
	}
	for _, code := range []string{"NvidiaXID79Error", "NvidiaXID31Warning", "KernelOops", "SystemOOM", "FilesystemShutdown", "NvidiaRecoveryAction"} {
		if _, err := sampleFor(catalog, code, ""); err != nil {
			t.Errorf("%s: %v", code, err)
		}
	}
	text, err := sampleFor(catalog, "BlockDeviceIOError", "nvme7n1")
	if err != nil || !strings.Contains(text, "nvme7n1") || !strings.HasSuffix(text, injectedMark) {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := sampleFor(catalog, "DiskSpaceLow", ""); err == nil {
		t.Error("a reason that no line shows was injected")
	}
}

func TestInjectWritesOneRecord(t *testing.T) {
	device := filepath.Join(t.TempDir(), "kmsg")
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errOut, err := execute(t, "inject", "NvidiaXID79Error", "--device", device); err != nil || !strings.Contains(errOut, "--trust-userspace-kmsg") {
		t.Errorf("%q, %v", errOut, err)
	}
	b, _ := os.ReadFile(device)
	if got := string(b); !strings.HasPrefix(got, "<2>NVRM: Xid") || !strings.HasSuffix(got, injectedMark+"\n") {
		t.Errorf("%q", got)
	}
}

func TestClearLeavesAnOrderForTheAgent(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := execute(t, "clear", "X", "--state-dir", dir); err == nil {
		t.Error("it spoke to an agent that is not there")
	}
	os.WriteFile(filepath.Join(dir, "ledger.json"), []byte("{}"), 0o600)
	if _, _, err := execute(t, "clear", "NvidiaRowRemapFailure/GPU-1", "--state-dir", dir); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "orders", "*.json"))
	if len(names) != 1 {
		t.Fatalf("orders %q", names)
	}
	b, _ := os.ReadFile(names[0])
	if !strings.Contains(string(b), `"reason":"NvidiaRowRemapFailure","subject":"GPU-1"`) {
		t.Errorf("%s", b)
	}
}
