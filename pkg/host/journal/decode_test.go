package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/google/go-cmp/cmp"
)

const kubeletLine = `{"_PID":"22549","PRIORITY":"6","MESSAGE":"E1201 00:37:10.033077   22549 container_manager_linux.go:557] \"Failed to ensure process in container with oom score\" err=\"failed to find pid namespace of init process\"","SYSLOG_IDENTIFIER":"kubelet","__REALTIME_TIMESTAMP":"1796085430033378","__MONOTONIC_TIMESTAMP":"1866055341","__CURSOR":"s=4379314020e148369297b208d4ae5f81;i=1c9;b=ef0cdef8c1924973a9c1ad3c96c8e62d;m=6f39bead;t=66187ba0b1be2;x=7cf1737cdf43a8cf","_SYSTEMD_UNIT":"kubelet.service","_TRANSPORT":"stdout","_BOOT_ID":"ef0cdef8c1924973a9c1ad3c96c8e62d"}`

func record(t *testing.T, line string) host.Record {
	t.Helper()
	var d decoder
	var c converter
	var e entry
	if err := d.decode([]byte(line), &e); err != nil {
		t.Fatalf("decode(%s): %v", line, err)
	}
	return c.record(&e)
}

func TestRecord(t *testing.T) {
	at := time.UnixMicro(1796085430033378)
	for name, tc := range map[string]struct {
		line string
		want host.Record
	}{
		"service": {kubeletLine, host.Record{
			Source: host.SourceJournal, Priority: 6, Facility: host.Unknown, Unit: "kubelet.service", Identifier: "kubelet",
			Message:   `E1201 00:37:10.033077   22549 container_manager_linux.go:557] "Failed to ensure process in container with oom score" err="failed to find pid namespace of init process"`,
			At:        at,
			Monotonic: 1866055341 * time.Microsecond, Boot: "ef0cdef8-c192-4973-a9c1-ad3c96c8e62d",
			Position: "journal/s=4379314020e148369297b208d4ae5f81;i=1c9;b=ef0cdef8c1924973a9c1ad3c96c8e62d;m=6f39bead;t=66187ba0b1be2;x=7cf1737cdf43a8cf",
		}},
		"systemd about a unit": {
			`{"_PID":"1","UNIT":"kubelet.service","_SYSTEMD_UNIT":"init.scope","MESSAGE":"kubelet.service: Failed","__CURSOR":"c","SYSLOG_FACILITY":"3"}`,
			host.Record{Source: host.SourceJournal, Priority: host.Unknown, Facility: 3, Unit: "kubelet.service", FromManager: true,
				Message: "kubelet.service: Failed", Position: "journal/c"},
		},
		"a pod that pretends to be systemd": {
			`{"_PID":"77","UNIT":"kubelet.service","_SYSTEMD_UNIT":"evil.service","MESSAGE":"kubelet.service: Failed","__CURSOR":"c"}`,
			host.Record{Source: host.SourceJournal, Priority: host.Unknown, Facility: host.Unknown, Unit: "evil.service",
				Message: "kubelet.service: Failed", Position: "journal/c"},
		},
		"the kernel": {
			`{"_TRANSPORT":"kernel","SYSLOG_FACILITY":"0","PRIORITY":"2","MESSAGE":"Oops","_KERNEL_DEVICE":"b259:0","_KERNEL_SUBSYSTEM":"block","__CURSOR":"c"}`,
			host.Record{Source: host.SourceJournal, Priority: 2, Kernel: true, Message: "Oops", Position: "journal/c",
				Keys: map[string]string{"DEVICE": "b259:0", "SUBSYSTEM": "block"}},
		},
		"user space in the kernel's log": {
			`{"_TRANSPORT":"kernel","SYSLOG_FACILITY":"1","MESSAGE":"Oops","__CURSOR":"c"}`,
			host.Record{Source: host.SourceJournal, Priority: host.Unknown, Facility: 1, Message: "Oops", Position: "journal/c"},
		},
		"bytes that are no text": {
			`{"MESSAGE":[255, 0,27,91,10,104,105],"__CURSOR":"c"}`,
			host.Record{Source: host.SourceJournal, Priority: host.Unknown, Facility: host.Unknown, Message: "\xff\x00\x1b[\nhi", Position: "journal/c"},
		},
		"a field given twice": {
			`{"MESSAGE":["one","two"],"PRIORITY":[[51],"4"],"__CURSOR":"c"}`,
			host.Record{Source: host.SourceJournal, Priority: 3, Facility: host.Unknown, Message: "one", Position: "journal/c"},
		},
		"several lines and escapes": {
			`{ "MESSAGE" : "panic:\n\tgoroutine 1 \u001b[31m \u00e9 \ud83d\ude00 \/ \"q\" \\" , "X":{"a":[1,{"b":null}]}, "Y":true, "Z":-1.5e3, "__CURSOR":"c"}`,
			host.Record{Source: host.SourceJournal, Priority: host.Unknown, Facility: host.Unknown,
				Message: "panic:\n\tgoroutine 1 \x1b[31m é 😀 / \"q\" \\", Position: "journal/c"},
		},
		"null": {
			`{"MESSAGE":null,"_BOOT_ID":null,"__CURSOR":"c"}`,
			host.Record{Source: host.SourceJournal, Priority: host.Unknown, Facility: host.Unknown, Position: "journal/c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, record(t, tc.line)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDecodeRefusesWhatIsNoEntry(t *testing.T) {
	for _, line := range []string{"", "-- No entries --", `{"a"`, `{"a":`, `{"a":"b"`, `{"a":"b",}`, `["a"]`, `{"MESSAGE":[256]}`, `{"MESSAGE":"x\"}`, `{"a":]}`, `{"a":}`} {
		var d decoder
		var e entry
		if err := d.decode([]byte(line), &e); err == nil {
			t.Errorf("decode(%q) found no fault", line)
		}
	}
}

func TestRecordKeepsAMessageOfAMebibyte(t *testing.T) {
	long := strings.Repeat("é\x01", 1<<19)
	b, err := json.Marshal(map[string]string{"MESSAGE": long, "__CURSOR": "c"})
	if err != nil {
		t.Fatal(err)
	}
	if got := record(t, string(b)); got.Message != long {
		t.Errorf("%d bytes came back as %d", len(long), len(got.Message))
	}
}

func FuzzDecodeAgreesWithEncodingJSON(f *testing.F) {
	f.Add([]byte(kubeletLine))
	f.Add([]byte(`{"MESSAGE":"\ud800 \u12","__CURSOR":[1,2]}`))
	f.Add([]byte(`{"MESSAGE":[[1,2],"x"],"A":{"b":[]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var d decoder
		var e entry
		err := d.decode(line, &e)
		var want map[string]any
		if json.Unmarshal(line, &want) != nil || bytes.Count(line, []byte(`"MESSAGE"`)) != 1 {
			return
		}
		for k := range want {
			if strings.ContainsAny(k, "\ufffd") {
				return // keys of systemd are ASCII
			}
		}
		if err != nil {
			if s, ok := want["MESSAGE"].([]any); ok && len(s) > 0 {
				return // numbers that are no bytes
			}
			t.Fatalf("decode(%q): %v", line, err)
		}
		if s, ok := want["MESSAGE"].(string); ok && !strings.Contains(s, "\ufffd") && string(e.message) != s {
			t.Errorf("decode(%q): message %q, want %q", line, e.message, s)
		}
	})
}

func TestLinesAreWholeHoweverTheyArrive(t *testing.T) {
	text := "one\n\ntwo two\n" + strings.Repeat("x", 100_000) + "\nlast\nunfinished"
	for _, size := range []int{1, 2, 3, 7, 4096, len(text)} {
		var got []string
		l := &lines{handle: func(b []byte) error { got = append(got, string(b)); return nil }, tooLong: func() { t.Error("too long") }}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if _, err := l.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		want := strings.Split(text, "\n")
		if d := cmp.Diff(want[:len(want)-1], got); d != "" {
			t.Errorf("in pieces of %d: %s", size, d)
		}
	}
}

func TestLinesLeaveOutAndCountWhatNoBufferShouldHold(t *testing.T) {
	var got []string
	long := 0
	l := &lines{handle: func(b []byte) error { got = append(got, string(b)); return nil }, tooLong: func() { long++ }}
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	for range maxLine/len(chunk) + 3 {
		if _, err := l.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(l, "tail of it\nnext\n")
	if d := cmp.Diff([]string{"next"}, got); d != "" || long != 1 {
		t.Errorf("counted %d, %s", long, d)
	}
}

func BenchmarkLineToRecord(b *testing.B) {
	line := []byte(kubeletLine + "\n")
	var d decoder
	var c converter
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		var e entry
		if err := d.decode(line, &e); err != nil {
			b.Fatal(err)
		}
		r := c.record(&e)
		_ = r
	}
}
