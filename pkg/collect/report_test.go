package collect

import (
	"net"
	"strings"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

func TestErrorsAreShortWherePeopleReadThem(t *testing.T) {
	argv := []string{"tool", "--long", "x"}
	for name, tc := range map[string]struct {
		item bundle.Item
		want string
	}{
		"the command line is not repeated": {bundle.Item{Argv: argv, Error: "tool --long x: exit status 1: no"}, "exit status 1: no"},
		"another's command line stays":     {bundle.Item{Error: "tool --long x: exit status 1"}, "tool --long x: exit status 1"},
		"long words end in a mark":         {bundle.Item{Error: strings.Repeat("é", 400)}, strings.Repeat("é", maxBrief/2) + "…"},
	} {
		if got := brief(&tc.item); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestADaemonWithoutASocketIsAbsent(t *testing.T) {
	dir := t.TempDir()
	socket := dir + "/d.sock"
	at := func(*env) string { return socket }
	said := sh("asked", "echo down >&2; exit 1").asking(at)
	c := collectTest(t, Options{Host: thisMachine(t)}, category("Base", said))
	if it := c.item(t, "asked"); it.Status != bundle.StatusAbsent || it.Error != "no socket "+socket {
		t.Errorf("without a socket: %s, %q", it.Status, it.Error)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c = collectTest(t, Options{Host: thisMachine(t)}, category("Base", said))
	if it := c.item(t, "asked"); it.Status != bundle.StatusFailed || !strings.Contains(it.Error, "down") {
		t.Errorf("with a socket: %s, %q", it.Status, it.Error)
	}
}

func TestSeveralErrorsAreOneLine(t *testing.T) {
	c := collectTest(t, Options{Host: thisMachine(t)}, category("Base", sequence("two", []string{"sh", "-c", "exit 1"}, []string{"sh", "-c", "exit 2"})))
	if it := c.item(t, "two"); !strings.Contains(it.Error, "exit status 1; sh -c exit 2: exit status 2") {
		t.Errorf("%q", it.Error)
	}
}
