package kmsg

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		in   string
		want Record
	}{
		"kernel record": {
			"6,339,1214638,-;tokio-rt-worker (69): drop_caches: 3\n",
			Record{Seq: 339, Priority: 6, Monotonic: 1214638 * time.Microsecond, Flag: '-', Message: "tokio-rt-worker (69): drop_caches: 3"},
		},
		"user-space record has a facility": {
			"12,7,5,-;hello\n",
			Record{Seq: 7, Priority: 4, Facility: 1, Monotonic: 5 * time.Microsecond, Flag: '-', Message: "hello"},
		},
		"dictionary": {
			"3,1,2,-;nvme0: I/O error\n SUBSYSTEM=block\n DEVICE=b259:0\n",
			Record{Seq: 1, Priority: 3, Monotonic: 2 * time.Microsecond, Flag: '-', Message: "nvme0: I/O error",
				Keys: map[string]string{"SUBSYSTEM": "block", "DEVICE": "b259:0"}},
		},
		"caller tag and fields of kernels to come": {
			"2,1,2,c,caller=T1234,new=1;x;y,z\n",
			Record{Seq: 1, Priority: 2, Monotonic: 2 * time.Microsecond, Flag: 'c', Caller: "T1234", Message: "x;y,z"},
		},
		"continuation of old kernels": {
			"6,9,10,+;tail\n",
			Record{Seq: 9, Priority: 6, Monotonic: 10 * time.Microsecond, Flag: '+', Message: "tail"},
		},
		"escapes": {
			`6,9,10,-;a\x0ab\x5cn \xc3\xa9 \xZZ \x4` + "\n K=\\x20v\n",
			Record{Seq: 9, Priority: 6, Monotonic: 10 * time.Microsecond, Flag: '-', Message: "a\nb\\n é \\xZZ \\x4",
				Keys: map[string]string{"K": " v"}},
		},
		"no newline at the end, no flag": {
			"6,9,10;m",
			Record{Seq: 9, Priority: 6, Monotonic: 10 * time.Microsecond, Flag: '-', Message: "m"},
		},
		"empty message": {"6,9,10,-;\n", Record{Seq: 9, Priority: 6, Monotonic: 10 * time.Microsecond, Flag: '-'}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tc.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseRefusesWhatIsNoRecord(t *testing.T) {
	for _, in := range []string{"", ";", "no record", "x,1,2,-;m", "6,x,2,-;m", "6,1,x,-;m", "6,1;m", "6,-1,2,-;m", "6,1,99999999999999999999,-;m"} {
		if r, err := Parse([]byte(in)); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", in, r)
		}
	}
}

// escape does what the kernel does to a message (msg_add_ext_text in printk.c).
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 127 || c == '\\' {
			const hex = "0123456789abcdef"
			b.WriteString(`\x` + string(hex[c>>4]) + string(hex[c&15]))
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("6,339,1214638,-;text\n SUBSYSTEM=virtio\n"), "a\\b\nc")
	f.Add([]byte("2,1,2,c,caller=T1;\\x0\\x00"), "\xff")
	f.Fuzz(func(t *testing.T, raw []byte, message string) {
		if r, err := Parse(raw); err == nil && (r.Priority < 0 || r.Priority > 7 || r.Facility < 0 || r.Monotonic < 0) {
			t.Errorf("Parse(%q) = %+v", raw, r)
		}
		r, err := Parse([]byte("6,1,2,-;" + escape(message) + "\n DEVICE=b8:0\n"))
		if err != nil || r.Message != message || r.Keys["DEVICE"] != "b8:0" {
			t.Errorf("message %q came back as %q, %v, %v", message, r.Message, r.Keys, err)
		}
	})
}
