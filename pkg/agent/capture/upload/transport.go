package upload

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

var (
	errStalled   = errors.New("nothing has moved for too long")
	errLinkLocal = errors.New("the destination is a link-local address, where clouds keep instance metadata: uploads do not go there")
)

// transport returns a transport of its own for one upload.
func (u *Uploader) transport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if !u.AllowLinkLocal {
		dialer.Control = refuseLinkLocal
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: or(u.Idle, time.Minute),
		ExpectContinueTimeout: time.Second,
		ForceAttemptHTTP2:     true,
	}
}

// refuseLinkLocal looks at the address that a name has led to: whoever may create a
// NodeDiagnostic must not reach the node's credentials through the agent.
func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	addr := ap.Addr().Unmap()
	// fd00:ec2::/32 holds the IPv6 addresses of EC2's metadata and other services.
	if addr.IsLinkLocalUnicast() || netip.MustParsePrefix("fd00:ec2::/32").Contains(addr) {
		return errLinkLocal
	}
	return nil
}

// stallTransport ends a request whose body has not moved for idle. A total timeout
// would fail large bundles on slow lines.
type stallTransport struct {
	base http.RoundTripper
	idle time.Duration
}

func (t *stallTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(t.idle, func() { cancel(errStalled) })
	r := req.Clone(ctx)
	if r.Body != nil {
		// Once the body is sent, the transport's ResponseHeaderTimeout takes over.
		r.Body = &watchedBody{ReadCloser: r.Body, moved: func() { timer.Reset(t.idle) }, done: func() { timer.Stop() }}
	}
	res, err := t.base.RoundTrip(r)
	timer.Stop()
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		if errors.Is(cause, errStalled) && req.Context().Err() == nil {
			return nil, errStalled
		}
		return nil, err
	}
	res.Body = &releasingBody{ReadCloser: res.Body, release: func() { cancel(nil) }}
	return res, nil
}

type watchedBody struct {
	io.ReadCloser
	mu          sync.Mutex
	closed      bool
	moved, done func()
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
	case err != nil:
		b.done()
	default:
		b.moved()
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.mu.Lock()
	b.closed = true
	b.done()
	b.mu.Unlock()
	return b.ReadCloser.Close()
}

// releasingBody frees the request's context once the answer has been read.
type releasingBody struct {
	io.ReadCloser
	release func()
}

func (b *releasingBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
