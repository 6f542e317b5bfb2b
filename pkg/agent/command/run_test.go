package command

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestRunRefusesFlagsThatCannotWork(t *testing.T) {
	for args, want := range map[string]string{
		"run --node-name a/b":                          "no node's name",
		"run --node-name ..":                           "no node's name",
		"run --node-name n --state-dir var":            "absolute path",
		"run --node-name n --state-dir /":              "absolute path",
		"run --node-name n --bundle-retention -1s":     "--bundle-retention",
		"run --node-name n --capture-timeout 0":        "--capture-timeout",
		"run --node-name n --kubeconfig /no/such/file": "/no/such/file",
		"run --node-name n --root /no/such/root":       "/no/such/root",
		"run n":                                        "unknown command",
	} {
		var out, errOut bytes.Buffer
		root := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
		root.SetArgs(strings.Fields(args))
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("node-agent %s: %v, want %q", args, err, want)
		}
	}
}

func TestCaptureIsHidden(t *testing.T) {
	var out bytes.Buffer
	root := New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	root.SetArgs([]string{"--help"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if help := out.String(); strings.Contains(help, "capture  ") || !strings.Contains(help, "run  ") {
		t.Errorf("help:\n%s", help)
	}
}
