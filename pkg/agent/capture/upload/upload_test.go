package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	signature = "3f1c9a77b0de42558899aabbccddeeff"
	query     = "?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAEXAMPLEKEY%2F20300101%2Feu-west-1&X-Amz-Signature=" + signature
)

var bundle = bytes.Repeat([]byte("bundle "), 200_000)

func bundleFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "n-logs.tar.gz")
	if err := os.WriteFile(path, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fast is an uploader whose pauses do not slow tests down.
func fast() *Uploader {
	return &Uploader{Retries: 3, WaitMin: time.Millisecond, WaitMax: 5 * time.Millisecond}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestPutSendsTheWholeFileWithItsLength(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPut || r.ContentLength != int64(len(bundle)) || !bytes.Equal(got, bundle) {
			t.Errorf("%s, Content-Length %d, %d bytes, %v", r.Method, r.ContentLength, len(got), err)
		}
		if len(r.TransferEncoding) > 0 {
			t.Errorf("sent in chunks, which S3 refuses: %v", r.TransferEncoding)
		}
		if r.URL.Query().Get("X-Amz-Signature") != signature {
			t.Error("the signature did not arrive")
		}
	})
	if err := fast().Put(t.Context(), url+"/b/n-logs.tar.gz"+query, bundleFile(t)); err != nil {
		t.Error(err)
	}
}

func TestPutTriesAgainWithTheWholeBody(t *testing.T) {
	var calls atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch calls.Add(1) {
		case 1:
			http.Error(w, "busy", http.StatusServiceUnavailable) // without reading the body
		case 2:
			w.Header().Set("Retry-After", "86400") // is not waited for
			http.Error(w, "slow down", http.StatusTooManyRequests)
		case 3:
			panic(http.ErrAbortHandler) // cuts the connection
		default:
			if got, _ := io.ReadAll(r.Body); !bytes.Equal(got, bundle) {
				t.Errorf("the last attempt sent %d bytes of %d", len(got), len(bundle))
			}
		}
	})
	if err := fast().Put(t.Context(), url, bundleFile(t)); err != nil {
		t.Error(err)
	}
	if calls.Load() != 4 {
		t.Errorf("%d attempts, want 4", calls.Load())
	}
}

func TestPutGivesUpWithTheServersWords(t *testing.T) {
	var calls atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		http.Error(w, "no disks today", http.StatusInternalServerError)
	})
	err := fast().Put(t.Context(), url, bundleFile(t))
	if err == nil || !strings.Contains(err.Error(), "500 Internal Server Error: no disks today") {
		t.Errorf("got %v", err)
	}
	if calls.Load() != 4 {
		t.Errorf("%d attempts, want 1 and 3 retries", calls.Load())
	}
}

func TestPutTriesAgainWhenNothingMoves(t *testing.T) {
	var calls atomic.Int32
	release := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			<-release // neither reads nor answers
		}
		_, _ = io.Copy(io.Discard, r.Body)
	})
	t.Cleanup(func() { close(release) })
	u := fast()
	u.Idle = 50 * time.Millisecond
	path := filepath.Join(t.TempDir(), "big")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	// More than the socket buffers hold, so that sending stalls.
	if err := errors.Join(f.Truncate(64<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := u.Put(t.Context(), url, path); err != nil {
		t.Error(err)
	}
	if calls.Load() != 2 {
		t.Errorf("%d attempts, want 2", calls.Load())
	}
}

func TestPutNeverTellsTheSignature(t *testing.T) {
	s3 := `<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>AccessDenied</Code><Message>Request has expired</Message><X-Amz-Expires>900</X-Amz-Expires>` +
		`<SignatureProvided>` + signature + `</SignatureProvided><HostId>x</HostId></Error>`
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"an S3 error": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, s3)
		}, "403 Forbidden: AccessDenied: Request has expired"},
		"text that echoes the request": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, "cannot PUT %s with signature %s at http://%s%s\x1b[31m\nsorry", r.URL.RawQuery, signature, r.Host, r.URL)
		}, "sorry"},
		"a broken connection": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ""},
		"a redirect to another signed URL": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "ftp://127.0.0.1/x?X-Amz-Signature=other"+signature)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := fast().Put(t.Context(), serve(t, tc.handler)+"/b"+query, bundleFile(t))
			if err == nil {
				t.Fatal("no error")
			}
			for _, leak := range []string{signature, "AKIAEXAMPLEKEY", "X-Amz-Signature", "\x1b", "\n"} {
				if strings.Contains(err.Error(), leak) {
					t.Errorf("%q in: %s", leak, err)
				}
			}
			if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "/b: ") {
				t.Errorf("%q does not say %q and where to", err, tc.want)
			}
		})
	}
}

func TestPutToNowhereSaysSoWithoutTheSignature(t *testing.T) {
	for _, dest := range []string{
		"http://127.0.0.1:1/b" + query,
		"http://name.invalid/b" + query,
		"ftp://127.0.0.1/b" + query,
		"http://%zz/" + query,
		"http://[::1/" + query,
	} {
		err := (&Uploader{Retries: 1, WaitMin: 1, WaitMax: 1}).Put(t.Context(), dest, bundleFile(t))
		if err == nil || strings.Contains(err.Error(), signature) {
			t.Errorf("%s: %v", dest, err)
		}
	}
}

func TestPutFollowsARedirectOnlyAsAPut(t *testing.T) {
	for code, ok := range map[int]bool{
		http.StatusTemporaryRedirect: true, http.StatusPermanentRedirect: true,
		http.StatusMovedPermanently: false, http.StatusFound: false, http.StatusSeeOther: false,
	} {
		var stored atomic.Int64
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/new" {
				if r.Method != http.MethodPut {
					t.Errorf("%d: followed as %s", code, r.Method)
				}
				n, _ := io.Copy(io.Discard, r.Body)
				stored.Store(n)
				return
			}
			w.Header().Set("Location", "/new")
			w.WriteHeader(code)
		})
		err := fast().Put(t.Context(), url+"/old", bundleFile(t))
		if (err == nil) != ok || (stored.Load() == int64(len(bundle))) != ok {
			t.Errorf("%d: error %v, %d bytes stored", code, err, stored.Load())
		}
	}
}

func TestPutRefusesTheMetadataService(t *testing.T) {
	for _, dest := range []string{"http://169.254.169.254/latest/api/token", "http://[fd00:ec2::254]/x", "http://[::ffff:169.254.169.254]/x"} {
		err := fast().Put(t.Context(), dest, bundleFile(t))
		if err == nil || !strings.Contains(err.Error(), "link-local") {
			t.Errorf("%s: %v", dest, err)
		}
	}
}

func TestPutEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	})
	if err := fast().Put(ctx, url, bundleFile(t)); err == nil {
		t.Error("a cancelled upload succeeded")
	}
}
