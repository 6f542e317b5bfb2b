// Package upload sends a finished bundle to a URL that somebody else signed. What
// it says about failures never holds the URL's query, which is the signature.
package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// Uploader sends files by HTTP PUT. The zero value is ready to use.
type Uploader struct {
	// Retries is how often a failed attempt is repeated. 0 means 5.
	Retries int
	// WaitMin and WaitMax bound the pause between attempts, which doubles, or is what
	// Retry-After says. 0 means 1 s and 30 s.
	WaitMin, WaitMax time.Duration
	// Idle ends an attempt in which nothing has moved for so long. 0 means 1 min.
	Idle time.Duration
	// AllowLinkLocal lets uploads go to link-local addresses. They are refused
	// otherwise: that is where clouds keep instance metadata.
	AllowLinkLocal bool
}

// Put sends the file at path as the body of one PUT to destination, with its
// length declared and its type application/gzip. The body is streamed and read
// anew for each attempt. 429, 5xx, time-outs and broken connections are tried
// again; any other answer is final, and the error quotes the server. Redirects are
// followed only where they keep the method (307, 308).
func (u *Uploader) Put(ctx context.Context, destination, path string) error {
	target, err := url.Parse(destination)
	if err != nil || target.Host == "" || (target.Scheme != "http" && target.Scheme != "https") {
		// The parser's own words would quote the whole URL.
		return errors.New("the destination is not an http:// or https:// URL")
	}
	secret := newSecret(target)
	if err := u.put(ctx, target, path, secret); err != nil {
		return fmt.Errorf("upload to %s: %s", Redact(destination), secret.removeFrom(err))
	}
	return nil
}

func (u *Uploader) put(ctx context.Context, target *url.URL, path string, secret secret) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	open := retryablehttp.ReaderFunc(func() (io.Reader, error) { return os.Open(path) })
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPut, target.String(), open)
	if err != nil {
		return err
	}
	req.ContentLength = info.Size()
	// A presigned URL signs no Content-Type unless its maker asked for one, so that
	// this header does not break a signature.
	req.Header.Set("Content-Type", "application/gzip")
	transport := u.transport()
	defer transport.CloseIdleConnections()
	client := u.client(transport)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("%s: %s", res.Status, words(res, secret))
	}
	return nil
}

func (u *Uploader) client(transport http.RoundTripper) *retryablehttp.Client {
	return &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     &stallTransport{base: transport, idle: or(u.Idle, time.Minute)},
			CheckRedirect: keepMethod,
		},
		Logger:       log.New(io.Discard, "", 0),
		RetryMax:     or(u.Retries, 5),
		RetryWaitMin: or(u.WaitMin, time.Second),
		RetryWaitMax: or(u.WaitMax, 30*time.Second),
		CheckRetry:   checkRetry,
		Backoff: func(least, most time.Duration, attempt int, res *http.Response) time.Duration {
			// Retry-After may be any number; the library takes it as it is.
			return min(retryablehttp.DefaultBackoff(least, most, attempt, res), most)
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
}

// checkRetry is the library's policy, but for 501 and for answers that the server
// gave on purpose.
func checkRetry(ctx context.Context, res *http.Response, err error) (bool, error) {
	if err != nil {
		if errors.Is(err, errLinkLocal) || errors.Is(err, errDowngrade) {
			return false, nil
		}
		if errors.Is(err, errStalled) && ctx.Err() == nil {
			return true, nil
		}
	}
	return retryablehttp.DefaultRetryPolicy(ctx, res, err)
}

var errDowngrade = errors.New("the server redirects from https to http, which would show the bundle to everybody on the way")

// keepMethod follows a redirect only as a PUT. Go turns a PUT that is answered with
// 301, 302 or 303 into a GET, whose 200 would read as success.
func keepMethod(req *http.Request, via []*http.Request) error {
	switch {
	case req.Method != http.MethodPut || len(via) > 5:
		return http.ErrUseLastResponse
	case via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https":
		return errDowngrade
	}
	// The signature is for the first server only: Referer would carry it along.
	req.Header.Del("Referer")
	return nil
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
