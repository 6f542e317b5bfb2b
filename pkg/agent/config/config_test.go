package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

const head = "apiVersion: ekslogs.io/v1alpha1\nkind: NodeAgentConfig\n"

func TestAFullConfigIsRead(t *testing.T) {
	c, err := Parse("c.yaml", []byte(head+`
monitors:
  kernel-monitor: {enabled: false}
  networking:
    allowedIPTablesChains: [filter/MY-CHAIN]
    excludedInterfaceNameRegexps: []
  nvidia: {expectedGPUs: 8}
mode: shadow
cleanSamples: 5
reasons:
  KernelOops: {severity: Fatal, mode: shadow}
  NvidiaXID{N}Error: {disabled: true, clears: never}
checks:
  zombies: {enabled: false, interval: 5m}
eventStyle: eks
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Monitor("kernel").On() || !c.Monitor("storage").On() || c.Monitor("networking").ExcludedInterfaceNameRegexps == nil {
		t.Errorf("monitors: %+v", c.Monitors)
	}
	p := c.Policy()
	if !p.Shadow || p.CleanSamples != 5 || p.Reasons["KernelOops"].Severity != health.Fatal || !p.Reasons["NvidiaXID{N}Error"].Disabled {
		t.Errorf("policy: %+v", p)
	}
	if ch := c.Checks["zombies"]; ch.On() || time.Duration(ch.Interval) != 5*time.Minute {
		t.Errorf("checks: %+v", c.Checks)
	}
}

func TestTheEKSAgentsFileIsReadAsItIs(t *testing.T) {
	c, err := Parse("config.yaml", []byte(`
monitors:
  kernel-monitor: {enabled: true}
  networking: {enabled: true, allowedIPTablesChains: ["filter/X"]}
  storage-monitor: {enabled: false}
  runtime: {enabled: true}
  nvidia: {enabled: false}
  neuron: {enabled: false}
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Monitor("storage").On() || !c.Monitor("container-runtime").On() {
		t.Errorf("%+v", c.Monitors)
	}
}

func TestErrorsNameTheLineAndSayWhatIsRight(t *testing.T) {
	for text, want := range map[string]string{
		head + "monitor: {}\n":                                                                 `line 3: unknown field "monitor"`,
		head + "monitors:\n  kernel:\n    enable: true\n":                                      `line 5: unknown field "enable"`,
		head + "monitors:\n  networkin: {}\n":                                                  "line 4: monitors.networkin: no such monitor",
		head + "monitors:\n  kernel: {}\n  kernel-monitor: {}\n":                               "it is the same monitor as",
		head + "monitors:\n  networking:\n    enabled: true\n    allowedIPTablesChains: [X]\n": "line 6: monitors.networking.allowedIPTablesChains",
		head + "monitors:\n  networking: {excludedInterfaceNameRegexps: ['(']}\n":              "no regular expression",
		head + "monitors:\n  kernel: {allowedIPTablesChains: [a/b]}\n":                         "belong to networking",
		head + "reasons:\n  KernelOops:\n    severity: fatal\n":                                "line 5: reasons.KernelOops.severity",
		head + "reasons:\n  KernelOops: {clears: soon}\n":                                      "say event, poll, reboot or never",
		head + "checks:\n  zombies: {interval: soon}\n":                                        "line 4",
		head + "checks:\n  zombies: {interval: 1ms}\n":                                         "less than a second",
		head + "mode: shade\n":                                                                 "line 3: mode",
		head + "cleanSamples: many\n":                                                          "line 3",
		head + "mode: shadow\nmode: shadow\n":                                                  "line 4",
		head + "---\nmode: shadow\n":                                                           "more than one document",
		"apiVersion: ekslogs.io/v2\nkind: NodeAgentConfig\n":                                   "line 1: apiVersion",
		"kind: NodeAgentConfig\n":                                                              "apiVersion",
		"mode: shadow\n":                                                                       "apiVersion",
		"apiVersion: ekslogs.io/v1alpha1\nkind: Other\n":                                       "line 2: kind",
		"- a\n":  "line 1",
		"a: [\n": "line",
	} {
		_, err := Parse("c.yaml", []byte(text))
		if err == nil {
			t.Errorf("accepted:\n%s", text)
			continue
		}
		if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "c.yaml: ") || strings.Contains(err.Error(), "config.Config") {
			t.Errorf("%q\ngives %q\nwant  %q", text, err, want)
		}
	}
}

func TestAnAbsentOrEmptyFileIsTheDefault(t *testing.T) {
	if c, err := Load(filepath.Join(t.TempDir(), "none")); err != nil || !c.Monitor("kernel").On() {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := Parse("c", []byte("# nothing\n")); err != nil || !c.Monitor("kernel").On() {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestReasonsThatNobodyKnowsAreNamed(t *testing.T) {
	c, err := Parse("c", []byte(head+"reasons:\n  KernelOps: {disabled: true}\n  NvidiaXID{N}Error: {}\n  NvidiaXID79Error: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.UnknownReasons(health.NewCatalog()); len(got) != 1 || got[0] != "KernelOps" {
		t.Errorf("%q", got)
	}
}

func TestChangesAreNoticedAsEditorsAndTheKubeletMakeThem(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed, err := Watch(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"written": func() error { return os.WriteFile(path, []byte("a"), 0o600) },
		"renamed": func() error {
			if err := os.WriteFile(path+".new", []byte("b"), 0o600); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
		"ConfigMap": func() error {
			os.Mkdir(filepath.Join(dir, name1), 0o700)
			if err := os.Symlink(name1, filepath.Join(dir, "..data_tmp")); err != nil {
				return err
			}
			return os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
		},
	} {
		for len(changed) > 0 {
			<-changed
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Errorf("%s: not noticed", name)
		}
	}
}

const name1 = "..2026_03_01"

func FuzzParse(f *testing.F) {
	f.Add(head + "monitors: {kernel: {enabled: false}}")
	f.Add("monitors: null\n")
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := Parse("c", []byte(s)); err == nil {
			c.Policy()
		}
	})
}
