package logtext

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// now is when the texts of the tests are read.
var now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func records(o Options, text string) []host.Record {
	o.Now = now
	p := NewParser(o)
	var out []host.Record
	for line := range strings.SplitSeq(text, "\n") {
		if r := p.Line(line); r != nil {
			out = append(out, *r)
		}
	}
	if r := p.Flush(); r != nil {
		out = append(out, *r)
	}
	return out
}

// want is what a test looks at of a record.
type want struct {
	Source             host.Source
	Kernel             bool
	Unit, Message      string
	At                 string
	Monotonic          time.Duration
	Priority, Facility int
	FromManager        bool
}

func TestLinesOfEveryTool(t *testing.T) {
	kernel := func(message string) want {
		return want{Source: host.SourceKmsg, Kernel: true, Message: message, Priority: -1, Facility: -1}
	}
	with := func(w want, change func(*want)) want {
		change(&w)
		return w
	}
	at := func(w want, at string) want { return with(w, func(w *want) { w.At = at }) }
	up := func(w want, d time.Duration) want { return with(w, func(w *want) { w.Monotonic = d }) }
	prio := func(w want, p, f int) want {
		return with(w, func(w *want) { w.Priority, w.Facility, w.Kernel = p, f, f == 0 })
	}
	service := func(unit, message string) want {
		return want{Source: host.SourceJournal, Unit: unit, Message: message, Priority: -1, Facility: -1}
	}
	for line, wanted := range map[string]want{
		"eth0: link up":                                                                                           kernel("eth0: link up"),
		"[   12.345678] eth0: link up":                                                                            up(kernel("eth0: link up"), 12345678*time.Microsecond),
		"[16450076.435595] eth0: link up":                                                                         up(kernel("eth0: link up"), 16450076435595*time.Microsecond),
		"[   12.345678][  T123] eth0: link up":                                                                    up(kernel("eth0: link up"), 12345678*time.Microsecond),
		"[   12.345678] [    C0] eth0: link up":                                                                   up(kernel("eth0: link up"), 12345678*time.Microsecond),
		"[Mon Aug  5 03:54:13 2024] eth0: link up":                                                                at(kernel("eth0: link up"), "2024-08-05T03:54:13Z"),
		"[Aug10 15:36] eth0: link up":                                                                             kernel("eth0: link up"),
		"[  +0.000012] eth0: link up":                                                                             kernel("eth0: link up"),
		"kern  :warn  : [   12.345678] eth0: link up":                                                             prio(up(kernel("eth0: link up"), 12345678*time.Microsecond), 4, 0),
		"kern  :warn  : 2025-01-21T04:41:44,285060+00:00 eth0: up":                                                prio(at(kernel("eth0: up"), "2025-01-21T04:41:44.28506Z"), 4, 0),
		"user  :warn  : [   12.345678] eth0: link up":                                                             prio(up(kernel("eth0: link up"), 12345678*time.Microsecond), 4, 1),
		"2025-01-21T04:41:44,285060+00:00 eth0: link up":                                                          at(kernel("eth0: link up"), "2025-01-21T04:41:44.28506Z"),
		"<6>[   12.345678] eth0: link up":                                                                         prio(up(kernel("eth0: link up"), 12345678*time.Microsecond), 6, 0),
		"<12>eth0: link up":                                                                                       prio(kernel("eth0: link up"), 4, 1),
		"6,3973,227996636,-;eth0: link up":                                                                        prio(up(kernel("eth0: link up"), 227996636*time.Microsecond), 6, 0),
		"14,3973,227996636,-,caller=T1;a\\x0ab":                                                                   prio(up(kernel("a\nb"), 227996636*time.Microsecond), 6, 1),
		"kernel: eth0: link up":                                                                                   kernel("eth0: link up"),
		"kernel: [123.4] eth0: link up":                                                                           up(kernel("eth0: link up"), 123400*time.Millisecond),
		"Aug 10 15:36:05 node-a kernel: eth0: link up":                                                            at(kernel("eth0: link up"), "2026-08-10T15:36:05Z"),
		"Dec 31 15:36:05 node-a kernel: eth0: link up":                                                            at(kernel("eth0: link up"), "2025-12-31T15:36:05Z"),
		"Aug 10 15:36:05.123456 node-a kernel: [ 5.1] eth0: up":                                                   up(at(kernel("eth0: up"), "2026-08-10T15:36:05.123456Z"), 5100*time.Millisecond),
		"2024-10-01T11:34:07+0200 node-a kernel: eth0: link up":                                                   at(kernel("eth0: link up"), "2024-10-01T09:34:07Z"),
		"Sat 2024-08-10 15:36:05 UTC node-a kernel: eth0: link up":                                                at(kernel("eth0: link up"), "2024-08-10T15:36:05Z"),
		"1723304165.123456 node-a kernel: eth0: link up":                                                          at(kernel("eth0: link up"), "2024-08-10T15:36:05.123456Z"),
		"[    5.123456] node-a kernel: eth0: link up":                                                             up(kernel("eth0: link up"), 5123456*time.Microsecond),
		"nginx[77]: segfault at 0 ip 0 sp 0 error 4":                                                              kernel("nginx[77]: segfault at 0 ip 0 sp 0 error 4"),
		"kubelet[3694]: I0220 14:23:09.120100    3694 x.go:1] hello":                                              at(service("kubelet.service", "I0220 14:23:09.120100    3694 x.go:1] hello"), "2026-02-20T14:23:09.1201Z"),
		"2024-10-01T11:34:07.899178+02:00 node-a kubelet[1914]: hello":                                            at(service("kubelet.service", "hello"), "2024-10-01T09:34:07.899178Z"),
		"<30>1 2024-10-01T11:34:07.899178+02:00 node-a kubelet 1914 - - hi":                                       at(service("kubelet.service", "hi"), "2024-10-01T09:34:07.899178Z"),
		"Sat 2024-08-10 15:36:05 UTC node-a containerd.service[77]: hello":                                        at(service("containerd.service", "hello"), "2024-08-10T15:36:05Z"),
		"Oct 22 05:17:19 node-a systemd[1]: kubelet.service: Failed.":                                             with(at(service("kubelet.service", "kubelet.service: Failed."), "2026-10-22T05:17:19Z"), func(w *want) { w.FromManager = true }),
		"Oct 22 05:17:19 node-a systemd: Unit kubelet.service entered":                                            with(at(service("kubelet.service", "Unit kubelet.service entered"), "2026-10-22T05:17:19Z"), func(w *want) { w.FromManager = true }),
		"2024-05-19T07:08:57.123456789Z stderr F kernel: [1.2] x":                                                 {Source: host.SourceFile, Message: "kernel: [1.2] x", At: "2024-05-19T07:08:57.123456789Z", Priority: -1, Facility: -1},
		"Warning  FailedMount  27s (x2 over 27s)  kubelet            MountVolume failed":                          service("kubelet.service", "MountVolume failed"),
		`{"MESSAGE":"hi","_SYSTEMD_UNIT":"kubelet.service","_PID":"7","__REALTIME_TIMESTAMP":"1723304165123456"}`: at(service("kubelet.service", "hi"), "2024-08-10T15:36:05.123456Z"),
		`{"MESSAGE":[104,105],"_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","SYSLOG_IDENTIFIER":"kernel"}`:          {Source: host.SourceJournal, Kernel: true, Message: "hi", Priority: -1},
		`{"MESSAGE":"hi","_TRANSPORT":"kernel","SYSLOG_FACILITY":"1","SYSLOG_IDENTIFIER":"x"}`:                    with(service("x.service", "hi"), func(w *want) { w.Facility = 1 }),
	} {
		got := records(Options{}, line)
		if len(got) != 1 {
			t.Errorf("%q: %d records", line, len(got))
			continue
		}
		r := got[0]
		stamp := ""
		if !r.At.IsZero() {
			stamp = r.At.UTC().Format(time.RFC3339Nano)
		}
		have := want{r.Source, r.Kernel, r.Unit, r.Message, stamp, r.Monotonic, r.Priority, r.Facility, r.FromManager}
		if d := cmp.Diff(wanted, have); d != "" {
			t.Errorf("%q (-want +got):\n%s", line, d)
		}
	}
}

func TestFurtherLinesBelongToTheirRecord(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"dmesg":         {"[   12.345678] one\n               two\n[   12.345679] three", []string{"one\ntwo", "three"}},
		"journal short": {"Aug 10 15:36:05 node-a kernel: one\n                               two", []string{"one\ntwo"}},
		"without stamp": {"one\n\ttwo", []string{"one", "\ttwo"}},
		"dictionary":    {"6,1,2,-;one\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:01.0\n6,2,3,-;two", []string{"one", "two"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range records(Options{}, c.text) {
				got = append(got, r.Message)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
	if r := records(Options{}, "6,1,2,-;one\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:01.0")[0]; r.Keys["DEVICE"] != "+pci:0000:00:01.0" {
		t.Errorf("keys are %v", r.Keys)
	}
}

func TestLinesWithoutPrefixAreWhatTheOptionsSay(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want want
	}{
		"kmsg":              {Options{Source: host.SourceKmsg}, want{Source: host.SourceKmsg, Kernel: true}},
		"a unit":            {Options{Source: host.SourceJournal, Unit: "kubelet"}, want{Source: host.SourceJournal, Unit: "kubelet.service"}},
		"the kernel's unit": {Options{Source: host.SourceJournal, Unit: "kernel"}, want{Source: host.SourceJournal, Kernel: true}},
		"an unknown unit":   {Options{Source: host.SourceJournal}, want{Source: host.SourceJournal, Kernel: true, Unit: AnyUnit}},
		"systemd":           {Options{Source: host.SourceJournal, Unit: "systemd"}, want{Source: host.SourceJournal, FromManager: true}},
		"a file":            {Options{Source: host.SourceFile, Path: "/x"}, want{Source: host.SourceFile}},
	} {
		t.Run(name, func(t *testing.T) {
			r := records(c.o, "hello there")[0]
			got := want{Source: r.Source, Kernel: r.Kernel, Unit: r.Unit, FromManager: r.FromManager}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAUnitThatQuotesTheKernelIsNotTheKernel(t *testing.T) {
	for _, line := range []string{"kernel: [1.2] BUG", "[1.2] BUG", "<0>BUG", "systemd[1]: x.service: Failed"} {
		if r := records(Options{Source: host.SourceJournal, Unit: "myapp"}, line)[0]; r.Kernel || r.Unit != "myapp.service" || r.Message != line {
			t.Errorf("%q is taken as %+v", line, r)
		}
	}
}

func TestReadTellsALineWhileThePipeIsOpen(t *testing.T) {
	in, out := io.Pipe()
	got := make(chan host.Record, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Read(ctx, in, Options{}, func(r host.Record) error { got <- r; return nil }, nil)
	}()
	if _, err := io.WriteString(out, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.Message != "hello" {
		t.Errorf("got %+v", r)
	}
	cancel()
	if err := <-done; err != context.Canceled {
		t.Errorf("Read: %v", err)
	}
	out.Close()
}

func FuzzParser(f *testing.F) {
	for _, s := range []string{"[1.2] a\n   b", "6,1,2,-;a\n K=v", `{"MESSAGE":"x"}`, "<6>[1.2] x", "Aug 10 15:36:05 h k[1]: x", "kern :warn : x", "Warning a 1s b c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, o := range []Options{{}, {Source: host.SourceJournal}, {Source: host.SourceJournal, Unit: "kubelet"}, {Source: host.SourceFile}} {
			for _, r := range records(o, s) {
				if o.Unit == "kubelet" && r.Kernel && !strings.Contains(s, "kernel") && !strings.Contains(s, ",") {
					t.Errorf("%q: the kernel's: %+v", s, r)
				}
				Dress(r)
			}
		}
	})
}

func TestWhatIsBeyondARecordsBoundIsDroppedAndNobodyElses(t *testing.T) {
	p := NewParser(Options{})
	p.Line("Jan 02 03:04:05 node-a app[1]: begin")
	for range 2 * maxRecord / 64 {
		if r := p.Line("        NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."); r != nil {
			t.Fatalf("a line of its own: %+v", r)
		}
	}
	if r := p.Flush(); r == nil || r.Kernel || len(r.Message) > maxRecord {
		t.Errorf("got a record of %d bytes", len(r.Message))
	}
}
