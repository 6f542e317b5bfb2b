package checks

import (
	"testing"

	"github.com/ekslogs/ekslogs/pkg/agent/config"
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

type memory map[string]string

func (m memory) Get(k string) string { return m[k] }
func (m memory) Set(k, v string)     { m[k] = v }

func TestEachConditionHasChecksWithNamesOfTheirOwn(t *testing.T) {
	h, err := host.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	names, conditions := map[string]bool{}, map[health.ConditionType]bool{}
	for _, c := range List(&config.Config{}, Options{Host: h, Catalog: health.NewCatalog(), Memory: memory{}}) {
		if names[c.Name()] {
			t.Errorf("two checks are called %s", c.Name())
		}
		names[c.Name()], conditions[c.Condition()] = true, true
	}
	for _, want := range []health.ConditionType{health.KernelReady, health.ContainerRuntimeReady, health.NetworkingReady, health.StorageReady} {
		if !conditions[want] {
			t.Errorf("nothing looks at %s", want)
		}
	}
	if !names["reboot"] {
		t.Error("what needs a memory is left out though there is one")
	}
}

func TestExcludedInterfaces(t *testing.T) {
	for name, tc := range map[string]struct {
		names    []string
		matches  bool
		patterns int
	}{
		"the default":                     {nil, true, 1},
		"an empty list turns it off":      {[]string{}, false, 0},
		"the config's list replaces ours": {[]string{"^eth9$", "^x"}, false, 2},
	} {
		got := excluded(config.Monitor{ExcludedInterfaceNameRegexps: tc.names})
		matches := false
		for _, re := range got {
			matches = matches || re.MatchString("nodelocaldns")
		}
		if len(got) != tc.patterns || matches != tc.matches {
			t.Errorf("%s: %v", name, got)
		}
	}
}
