package rule

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

func TestEmbeddedRulesAreProvedByTheirSamples(t *testing.T) {
	rules, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(rules, health.NewCatalog()); err != nil {
		t.Fatal(err)
	}
}

// faultRule is a rule that finds "widget NAME broke (N)".
func faultRule() Rule {
	return Rule{
		ID: "widget", Source: host.SourceKmsg, Reason: "KernelBug",
		Patterns: []string{`^widget (?P<name>\w+) broke \((?P<n>\d+)\)`}, Ints: []string{"n"},
		Subject: "{name}", Message: "Widget {name} broke",
		Samples: Samples{
			Match:   []Sample{{Text: "widget a broke (1)", Fields: map[string]any{"name": "a", "n": 1}, Subject: "a"}},
			NoMatch: []string{"widget a works"},
		},
	}
}

func newEngineOf(t *testing.T, rules ...Rule) *Engine {
	t.Helper()
	e, err := New(rules, health.NewCatalog())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func kernelLine(text string, at time.Time) host.Record {
	return host.Record{Source: host.SourceKmsg, Kernel: true, Message: text, At: at}
}

func TestRulesThatAreWrongAreRefusedByName(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Rule)
		want   string
	}{
		"no id":                       {func(r *Rule) { r.ID = "" }, "rule number 1: it has no id"},
		"an unknown source":           {func(r *Rule) { r.Source = "dmesg" }, "source"},
		"an unknown severity":         {func(r *Rule) { r.Severity = "Bad" }, "severity"},
		"no message":                  {func(r *Rule) { r.Message = "" }, "message"},
		"a field nobody has":          {func(r *Rule) { r.Subject = "{nme}" }, `"nme"`},
		"an int nobody has":           {func(r *Rule) { r.Ints = []string{"m"} }, `"m"`},
		"a bad pattern":               {func(r *Rule) { r.Patterns = []string{"("} }, "pattern"},
		"no patterns":                 {func(r *Rule) { r.Patterns = nil }, "no patterns"},
		"no literal":                  {func(r *Rule) { r.Patterns = []string{`(?i)widget`} }, "give literals"},
		"literals that are not there": {func(r *Rule) { r.Literals = []string{"gadget"} }, "no literal of the rule"},
		"no sample that matches":      {func(r *Rule) { r.Samples.Match = nil }, "samples.match is empty"},
		"no sample that does not":     {func(r *Rule) { r.Samples.NoMatch = nil }, "samples.noMatch is empty"},
		"a wrong subject":             {func(r *Rule) { r.Samples.Match[0].Subject = "b" }, "samples.match[0]: subject"},
		"units for kmsg":              {func(r *Rule) { r.Units = []string{"x"} }, "neither units nor paths"},
		"no units for a journal":      {func(r *Rule) { r.Source = host.SourceJournal }, "has units"},
		"no paths for a file":         {func(r *Rule) { r.Source = host.SourceFile }, "has paths"},
		"a window of no length":       {func(r *Rule) { r.Window = &Window{Count: 3} }, "window"},
	} {
		t.Run(name, func(t *testing.T) {
			r := faultRule()
			c.change(&r)
			_, err := New([]Rule{r}, health.NewCatalog())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "rule ") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestRankDecidesBetweenRules(t *testing.T) {
	general := faultRule()
	general.ID, general.Patterns, general.Rank, general.Subject, general.Message = "any", []string{`^widget \w+ broke`}, -1, "", "Something broke"
	general.Ints, general.Samples = nil, Samples{Match: []Sample{{Text: "widget b broke"}}, NoMatch: []string{"x"}}
	e := newEngineOf(t, general, faultRule())
	if f := e.Detect(kernelLine("widget a broke (7)", time.Time{})); len(f) != 1 || f[0].Subject != "a" || f[0].Fields["n"] != int64(7) {
		t.Errorf("got %+v, want the more exact rule alone", f)
	}
	general.Rank = 1
	if _, err := New([]Rule{general, faultRule()}, health.NewCatalog()); err == nil || !strings.Contains(err.Error(), "rule any takes the line") {
		t.Errorf("a rule that is never heard: error %v", err)
	}
}

func TestWindowCountsOneSubjectByTheClockOfTheRecords(t *testing.T) {
	r := faultRule()
	r.Window = &Window{Count: 3}
	r.Window.Within.Duration, r.Window.Span.Duration = time.Hour, 10*time.Minute
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		lines []string // "MINUTES NAME"
		want  int
	}{
		"enough, over long enough": {[]string{"0 a", "5 a", "10 a"}, 1},
		"too few":                  {[]string{"0 a", "30 a"}, 0},
		"too close together":       {[]string{"0 a", "1 a", "2 a", "3 a"}, 0},
		"of different subjects":    {[]string{"0 a", "5 b", "10 c"}, 0},
		"too far apart":            {[]string{"0 a", "50 a", "100 a", "150 a"}, 0},
		"the clock steps back":     {[]string{"0 a", "30 a", "0 a", "20 a"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngineOf(t, r)
			got := 0
			for _, l := range c.lines {
				minutes, name, _ := strings.Cut(l, " ")
				d, err := time.ParseDuration(minutes + "m")
				if err != nil {
					t.Fatal(err)
				}
				got += len(e.Detect(kernelLine("widget "+name+" broke (1)", start.Add(d))))
			}
			if got != c.want {
				t.Errorf("%d findings, want %d", got, c.want)
			}
		})
	}
}

func TestWindowsAreBounded(t *testing.T) {
	r := faultRule()
	r.Window = &Window{Count: 3}
	r.Window.Within.Duration = time.Hour
	e := newEngineOf(t, r)
	for i := range 5000 {
		e.Detect(kernelLine("widget n"+strings.Repeat("x", i%3000)+" broke (1)", time.Unix(int64(i), 0)))
	}
	if n := len(e.windows[e.all[0]]); n > maxSubjects {
		t.Errorf("%d subjects are counted, want at most %d", n, maxSubjects)
	}
}

func TestJournalRulesGoByTheUnit(t *testing.T) {
	r := faultRule()
	r.Source, r.Units = host.SourceJournal, []string{"widget.service", "snap.widget*.service"}
	e := newEngineOf(t, r)
	for unit, want := range map[string]int{"widget.service": 1, "snap.widget-x.daemon.service": 1, "other.service": 0, "": 0, AnyUnit: 1} {
		rec := host.Record{Source: host.SourceJournal, Unit: unit, Identifier: "widget", Message: "widget a broke (1)"}
		if got := len(e.Detect(rec)); got != want {
			t.Errorf("unit %q: %d findings, want %d", unit, got, want)
		}
	}
}

func TestFieldsAreFitForAnAPIObject(t *testing.T) {
	r := faultRule()
	r.Patterns = []string{`^widget (?P<name>.+) broke \((?P<n>\d+)\)`}
	e := newEngineOf(t, r)
	f := e.Detect(kernelLine("widget a\x00\x1b[31m\xff"+strings.Repeat("b", 4000)+" broke (99999999999999999999)", time.Time{}))
	if len(f) != 1 {
		t.Fatal(f)
	}
	name, _ := f[0].Fields["name"].(string)
	if len(name) > maxField || !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\x1b") {
		t.Errorf("name is %q", name)
	}
	if n, ok := f[0].Fields["n"]; ok {
		t.Errorf("n is %v, want none: it is no int64", n)
	}
}

func TestLoadDirTakesAllFilesAndRefusesOtherKinds(t *testing.T) {
	fsys := fstest.MapFS{
		"d/a.yaml": {Data: []byte("apiVersion: ekslogs.io/v1alpha1\nkind: RuleList\nrules: [{id: a}]\n")},
		"d/b.yml":  {Data: []byte("apiVersion: ekslogs.io/v1alpha1\nkind: RuleList\nrules: [{id: b}]\n")},
		"d/README": {Data: []byte("no rules")},
		"x/a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\n")},
	}
	rules, err := LoadDir(fsys, "d")
	if err != nil || len(rules) != 2 {
		t.Errorf("%v, %v", rules, err)
	}
	if _, err := LoadDir(fsys, "x"); err == nil || !strings.Contains(err.Error(), "a.yaml") {
		t.Errorf("error %v, want one that names the file", err)
	}
	if rules, err := LoadDir(fsys, "none"); err != nil || rules != nil {
		t.Errorf("a directory that is not there: %v, %v", rules, err)
	}
}
