package collect

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/collect/redact"
)

// tempFiles makes files in a folder of the test and keeps their names.
type tempFiles struct {
	dir   string
	names []string
}

func (f *tempFiles) create() (*os.File, error) {
	file, err := os.CreateTemp(f.dir, "spool")
	if err == nil {
		f.names = append(f.names, file.Name())
	}
	return file, err
}

func TestSpoolKeepsHeadAndTail(t *testing.T) {
	for _, tc := range []struct{ limit, size, chunk int }{
		{100, 0, 1}, {100, 99, 7}, {100, 100, 100}, {100, 101, 13}, {100, 1000, 3}, {100, 1000, 1000},
		{101, 5000, 50}, {1, 10, 1}, {2, 10, 3},
		{spoolMemory, 3 * spoolMemory, 1000}, {4 * spoolMemory, 4 * spoolMemory, 1 << 16}, {4 * spoolMemory, 9*spoolMemory + 5, 77777},
	} {
		t.Run(fmt.Sprintf("%d of %d by %d", tc.limit, tc.size, tc.chunk), func(t *testing.T) {
			in := make([]byte, tc.size)
			for i := range in {
				in[i] = byte('a' + i%23)
			}
			files := &tempFiles{dir: t.TempDir()}
			s := newSpool(int64(tc.limit), files.create)
			defer s.discard()
			for rest := in; len(rest) > 0; {
				n := min(tc.chunk, len(rest))
				if k, err := s.Write(rest[:n]); err != nil || k != n {
					t.Fatal(k, err)
				}
				rest = rest[n:]
			}
			got, err := io.ReadAll(s.reader())
			if err != nil {
				t.Fatal(err)
			}
			want := in
			if tc.size > tc.limit {
				head := (tc.limit + 1) / 2
				want = bytes.Join([][]byte{in[:head], []byte(s.marker()), in[tc.size-(tc.limit-head):]}, nil)
				if !strings.Contains(s.marker(), fmt.Sprint(tc.size-tc.limit)) {
					t.Errorf("marker %q does not say how much is missing", s.marker())
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, want %d", len(got), len(want))
			}
			if s.size() != int64(len(got)) {
				t.Errorf("size %d, but %d bytes come", s.size(), len(got))
			}
			if onDisk := len(files.names) > 0; onDisk != (min(tc.size, tc.limit) > spoolMemory) {
				t.Errorf("on disk: %v", onDisk)
			}
		})
	}
}

func unlimitedSpace() *space {
	return &space{stat: func() (uint64, uint64, error) { return 1 << 40, 0, nil }}
}

// What goes to the disk is what has been through the redactor, from the first byte.
func TestSecretsAreNeverInTheSpoolFile(t *testing.T) {
	files := &tempFiles{dir: t.TempDir()}
	out := newSink(redact.New(), 8*spoolMemory, unlimitedSpace(), files.create)
	line := strings.Repeat("ordinary words ", 20) + " DB_PASSWORD=hunter2-secret AKIAIOSFODNN7EXAMPLE\n"
	for i := range 4 * spoolMemory / len(line) {
		if _, err := io.WriteString(out, line); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			checkNoSecret(t, files)
		}
	}
	if err := out.close(); err != nil {
		t.Fatal(err)
	}
	checkNoSecret(t, files)
	if len(files.names) != 1 || out.redactions()["password"] == 0 {
		t.Fatalf("%d files, redactions %v: the test proves nothing", len(files.names), out.redactions())
	}
	out.spool.discard()
}

func checkNoSecret(t *testing.T, files *tempFiles) {
	t.Helper()
	for _, name := range files.names {
		text, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("hunter2")) || bytes.Contains(text, []byte("AKIAIOSFODNN7")) {
			t.Fatal("a secret is on the disk")
		}
	}
}

func TestTailBeginsWithAWholeLineThatIsNoPartOfAKey(t *testing.T) {
	key := strings.Repeat("MIIEowIBAAKCAQEA1234567890123456789012345678901234567890abcdefgh\n", 5)
	for _, tc := range []struct{ name, in, want string }{
		{"text", "of a line\nnext line\nlast", "next line\nlast"},
		{"key", "of a line\n" + key + "-----END PRIVATE KEY-----\nlog\n", "-----END PRIVATE KEY-----\nlog\n"},
		{"no newline", strings.Repeat("x", 1000), ""},
		{"long line", "a\n" + strings.Repeat("y", 500) + "\nz\n", strings.Repeat("y", 500) + "\nz\n"},
		{"short last line", "a\nend", "end"},
	} {
		for _, chunk := range []int{1, 3, 64, 100, 10_000} {
			var out bytes.Buffer
			tail := &tailStart{out: &out}
			for rest := tc.in; rest != ""; {
				n := min(chunk, len(rest))
				if _, err := io.WriteString(tail, rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := tail.flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != tc.want {
				t.Errorf("%s by %d: %.100q, want %.100q", tc.name, chunk, out.String(), tc.want)
			}
		}
	}
}
