package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pack returns a bundle of about size bytes that does not compress.
func pack(t *testing.T, size int) []byte {
	t.Helper()
	content := make([]byte, size)
	_, _ = rand.Read(content)
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	if err := tw.WriteHeader(&tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: int64(size), Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	_, _ = tw.Write(content)
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// server serves content as the kubelet does, but for what cut says of the n'th
// request, from 1 up: how many bytes to send before the connection drops.
type server struct {
	t        *testing.T
	content  []byte
	modified time.Time
	n        int
	cut      func(n int) int
	ranges   []string
	// turn is called before each request and may change what is served.
	turn func(s *server)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.n++
	if s.turn != nil {
		s.turn(s)
	}
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	if r.Header.Get("Range") != "" && r.Header.Get("If-Range") == "" {
		s.t.Error("a Range without an If-Range may join two files")
	}
	out := w
	if s.cut != nil {
		if n := s.cut(s.n); n >= 0 {
			out = &cutter{ResponseWriter: w, left: n}
		}
	}
	http.ServeContent(out, r, "x.tar.gz", s.modified, bytes.NewReader(s.content))
}

// cutter drops the connection after some bytes.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if len(p) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= len(p)
	return c.ResponseWriter.Write(p)
}

// get downloads from h into a file and returns what is in it.
func get(t *testing.T, h http.Handler, change func(*Download)) ([]byte, *Result, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	defer srv.CloseClientConnections()
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := Download{Client: srv.Client(), URL: srv.URL, Pause: func(context.Context, int) error { return nil }}
	if change != nil {
		change(&d)
	}
	res, err := d.To(t.Context(), f)
	b, rerr := os.ReadFile(f.Name())
	if rerr != nil {
		t.Fatal(rerr)
	}
	return b, res, err
}

var someTime = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestADroppedConnectionIsTakenUpWhereItEnded(t *testing.T) {
	content := pack(t, 1<<20)
	s := &server{t: t, content: content, modified: someTime, cut: func(n int) int {
		if n < 4 {
			return 100_000
		}
		return -1
	}}
	b, res, err := get(t, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b, content) || res.Resumed != 3 || res.Size != int64(len(content)) || res.Report.Entries != 1 {
		t.Errorf("%d bytes, %+v", len(b), res)
	}
	if want := "|bytes=100000-|bytes=200000-|bytes=300000-"; strings.Join(s.ranges, "|") != want {
		t.Errorf("ranges %q, want %q", s.ranges, want)
	}
}

func TestAFileThatIsReplacedMeanwhileIsReadFromItsBeginning(t *testing.T) {
	fresh := pack(t, 1<<20)
	for _, tc := range []struct {
		name string
		turn func(*server)
	}{
		{"the server notices", func(s *server) {
			if s.n == 2 {
				s.content, s.modified = fresh, someTime.Add(time.Hour)
			}
		}},
		{"within the same second, with another size", func(s *server) {
			if s.n == 2 {
				s.content = fresh
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &server{t: t, content: pack(t, 2<<20), modified: someTime, turn: tc.turn, cut: func(n int) int {
				if n == 1 {
					return 300_000
				}
				return -1
			}}
			b, _, err := get(t, s, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b, fresh) {
				t.Error("two files were joined")
			}
		})
	}
}

func TestAFileThatNeverRestsIsGivenUp(t *testing.T) {
	s := &server{t: t, content: pack(t, 1<<20), modified: someTime, cut: func(int) int { return 1000 },
		turn: func(s *server) { s.modified = s.modified.Add(time.Second) }}
	if _, _, err := get(t, s, nil); err == nil || !strings.Contains(err.Error(), "keeps writing it anew") {
		t.Errorf("error: %v", err)
	}
}

func TestAServerWithoutRangesIsAskedForTheWholeAgain(t *testing.T) {
	content := pack(t, 1<<20)
	n := 0
	b, _, err := get(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.Header().Set("Content-Length", "2000000")
			_, _ = w.Write(content[:1000])
			panic(http.ErrAbortHandler)
		}
		if r.Header.Get("Range") != "" {
			t.Error("there is nothing to tell one file from another")
		}
		_, _ = w.Write(content)
	}), nil)
	if err != nil || !bytes.Equal(b, content) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestADamagedBundleIsNotTakenHome(t *testing.T) {
	whole := pack(t, 1<<20)
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for name, content := range map[string][]byte{
		"cut":              whole[:len(whole)/2],
		"without its end":  whole[:len(whole)-4],
		"a bit flipped":    flipped,
		"empty":            {},
		"something behind": append(bytes.Clone(whole), "tail"...),
		"no gzip":          []byte("<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := get(t, &server{t: t, content: content, modified: someTime}, nil)
			var broken *BundleError
			if !errors.As(err, &broken) {
				t.Errorf("error: %v", err)
			}
		})
	}
}

func TestAConnectionThatBringsNothingIsMadeAnew(t *testing.T) {
	content := pack(t, 1<<20)
	s := &server{t: t, content: content, modified: someTime}
	n := 0
	b, _, err := get(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write(content[:10])
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		s.ServeHTTP(w, r)
	}), func(d *Download) { d.Idle = 50 * time.Millisecond })
	if err != nil || !bytes.Equal(b, content) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestItGivesUpAfterAttemptsWithoutAByte(t *testing.T) {
	n := 0
	_, _, err := get(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		http.Error(w, "dial tcp 10.0.0.1:10250: i/o timeout", http.StatusBadGateway)
	}), func(d *Download) { d.Attempts = 3 })
	var resp *ResponseError
	if !errors.As(err, &resp) || resp.Code != http.StatusBadGateway || n != 3 {
		t.Errorf("%d requests, error %v", n, err)
	}
}

func TestCancelEndsItAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(stop)
		<-r.Context().Done()
	}))
	defer srv.Close()
	f, err := os.Create(filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := (Download{Client: srv.Client(), URL: srv.URL}).To(ctx, f); !errors.Is(err, stop) {
		t.Errorf("error: %v", err)
	}
}

func TestCommitTakesANameOnceOrReplacesIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tar.gz")
	write := func(text string, replace bool) error {
		f, err := Create(path, replace)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		return f.Commit()
	}
	if err := write("one", false); err != nil {
		t.Fatal(err)
	}
	if err := write("two", false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("error: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "one" {
		t.Errorf("it was overwritten: %q", b)
	}
	if err := write("three", true); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "three" {
		t.Errorf("it was not replaced: %q", b)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f, err := Create(filepath.Join(dir, "x"), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Discard(), f.Discard()); err != nil {
		t.Error(err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestSmall(t *testing.T) {
	for _, tc := range []struct {
		name string
		h    http.HandlerFunc
		want string
		ok   bool
	}{
		{"there", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("abc")) }, "abc", true},
		{"absent", http.NotFound, "", true},
		{"too long", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 99)) }, "", false},
		{"denied", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			srv := httptest.NewServer(tc.h)
			defer srv.Close()
			b, err := Download{Client: srv.Client(), URL: srv.URL}.Small(t.Context(), 10)
			if tc.ok != (err == nil) || (tc.ok && string(b) != tc.want) {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}
