package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// httpSource is what a server on this machine says of itself.
type httpSource struct{ url string }

// get is an entry for an introspection endpoint on loopback.
func get(path, url string) entry {
	return entry{path: path, src: httpSource{url: url}, timeout: 5 * time.Second, lane: laneNetwork}
}

func (httpSource) kind() bundle.Source { return bundle.SourceHTTP }

func (s httpSource) fetch(ctx context.Context, e *env, out *sink) error {
	out.note(func(o *sink) { o.from = s.url })
	if !e.live {
		return absent("the root is a copy of files, not a running host")
	}
	resp, err := e.request(ctx, http.MethodGet, s.url, nil)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return absent("nothing listens at %s", s.url)
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", s.url, resp.Status)
	}
	_, err = io.Copy(out, resp.Body)
	return err
}

// request does not use a proxy: all it is for is on this machine or link-local.
func (e *env) request(ctx context.Context, method, url string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext:       (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
		DisableKeepAlives: true,
	}}
	return client.Do(req)
}

// imdsURL is the EC2 instance metadata service, version 2 of which wants a session
// token (EC2 User Guide, "Use the Instance Metadata Service").
const imdsURL = "http://169.254.169.254/latest/"

// imds reads a value of the instance metadata.
func (e *env) imds(ctx context.Context, path string) (string, error) {
	if !e.platform.EC2 {
		return "", absent("not an EC2 instance")
	}
	const ttl, token = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "X-Aws-Ec2-Metadata-Token"
	session, err := e.readAll(ctx, http.MethodPut, imdsURL+"api/token", http.Header{ttl: {"60"}})
	if err != nil {
		return "", err
	}
	return e.readAll(ctx, http.MethodGet, imdsURL+path, http.Header{token: {session}})
}

func (e *env) readAll(ctx context.Context, method, url string, header http.Header) (string, error) {
	resp, err := e.request(ctx, method, url, header)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, resp.Status)
	}
	return strings.TrimSpace(string(b)), nil
}
