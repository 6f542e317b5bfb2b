package command

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestWrongUsageSaysWhereHelpIs(t *testing.T) {
	for line, want := range map[string]string{
		"bogus":       `unknown command "bogus" for "node-agent" (see node-agent --help)`,
		"rules bogus": `unknown command "bogus" for "node-agent rules" (see node-agent rules --help)`,
		"gpu bogus":   `unknown command "bogus" for "node-agent gpu" (see node-agent gpu --help)`,
		"config x":    `unknown command "x" for "node-agent config" (see node-agent config --help)`,
		"clear":       `accepts 1 arg(s), received 0 (see node-agent clear --help)`,
		"run --nope":  `unknown flag: --nope (see node-agent run --help)`,
	} {
		streams, _, _, _ := genericiooptions.NewTestIOStreams()
		cmd := New(streams)
		cmd.SetArgs(strings.Fields(line))
		if err := cmd.Execute(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestAGroupOfCommandsShowsItsHelp(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	cmd := New(streams)
	cmd.SetArgs([]string{"rules"})
	if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), "Available Commands") {
		t.Errorf("%v: %s", err, out)
	}
}
