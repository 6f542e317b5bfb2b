package collect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

// apiServer asks the API server for /livez, as anybody can, and tells how long
// each step took. It sends no credentials.
func apiServer(ctx context.Context, e *env, w io.Writer) error {
	if e.kubelet.server == "" {
		return absent("no API server is named in the kubelet's kubeconfig")
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	start := time.Now()
	step := func(name string) {
		fmt.Fprintf(w, "%8.1f ms  %s\n", float64(time.Since(start).Microseconds())/1000, name)
	}
	fmt.Fprintf(w, "GET %s/livez\n", e.kubelet.server)
	trace := &httptrace.ClientTrace{
		DNSDone:              func(i httptrace.DNSDoneInfo) { step(fmt.Sprintf("name looked up: %v %v", i.Addrs, errWord(i.Err))) },
		ConnectDone:          func(_, addr string, err error) { step("connected to " + addr + " " + errWord(err)) },
		TLSHandshakeDone:     func(_ tls.ConnectionState, err error) { step("TLS done " + errWord(err)) },
		GotFirstResponseByte: func() { step("first byte") },
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, e.kubelet.server+"/livez?verbose", nil)
	if err != nil {
		return err
	}
	conf, trust := e.serverTrust()
	fmt.Fprintln(w, trust)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: conf, DisableKeepAlives: true, Proxy: http.ProxyFromEnvironment}}
	resp, err := client.Do(req)
	if err != nil {
		step("failed: " + err.Error())
		return err
	}
	defer resp.Body.Close()
	step(resp.Status)
	_, err = io.Copy(w, io.LimitReader(resp.Body, 64<<10))
	return err
}

// serverTrust is how the API server's certificate is checked: against the
// kubelet's authority, if it is in a file. It says which in words.
func (e *env) serverTrust() (*tls.Config, string) {
	pool := x509.NewCertPool()
	if pem, err := e.host.ReadFile(e.kubelet.caFile, 1<<20); err == nil && e.kubelet.caFile != "" && pool.AppendCertsFromPEM(pem) {
		return &tls.Config{RootCAs: pool}, "certificate checked against " + e.kubelet.caFile
	}
	// Nothing is sent that must be kept from a wrong server.
	return &tls.Config{InsecureSkipVerify: true}, "certificate not checked: the kubeconfig names no authority's file"
}

func errWord(err error) string {
	if err == nil {
		return ""
	}
	return "(" + err.Error() + ")"
}

// nameServers looks the API server's and the registry's names up at each name
// server of the host's resolv.conf.
func nameServers(ctx context.Context, e *env, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 8*time.Second)
	defer cancel()
	conf, err := e.host.ReadString("/etc/resolv.conf")
	if err != nil {
		return absent("no /etc/resolv.conf")
	}
	names := []string{"public.ecr.aws", "api.ecr." + e.region(ctx) + ".amazonaws.com"}
	if u, err := url.Parse(e.kubelet.server); err == nil && u.Hostname() != "" && net.ParseIP(u.Hostname()) == nil {
		names = append([]string{u.Hostname()}, names...)
	}
	type answer struct {
		text string
		err  error
	}
	var asked []chan answer
	for line := range strings.Lines(conf) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		for _, name := range names {
			c := make(chan answer, 1)
			asked = append(asked, c)
			go func() {
				text, err := lookup(ctx, f[1], name)
				c <- answer{text, err}
			}()
		}
	}
	if len(asked) == 0 {
		return absent("/etc/resolv.conf names no name server")
	}
	var errs []error
	for _, c := range asked {
		a := <-c
		if _, err := io.WriteString(w, a.text); err != nil {
			return err
		}
		if a.err != nil {
			errs = append(errs, a.err)
		}
	}
	if len(errs) == len(asked) {
		return errors.Join(errs...)
	}
	return nil
}

func lookup(ctx context.Context, server, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(server, "53"))
	}}
	start := time.Now()
	addrs, err := r.LookupHost(ctx, name)
	took := float64(time.Since(start).Microseconds()) / 1000
	if err != nil {
		return fmt.Sprintf("%8.1f ms  %s at %s: failed: %v\n", took, name, server, err), err
	}
	return fmt.Sprintf("%8.1f ms  %s at %s: %s\n", took, name, server, strings.Join(addrs, " ")), nil
}

// region is the instance's region, or a large one that anybody can look up.
func (e *env) region(ctx context.Context) string {
	if r, err := e.imds(ctx, "meta-data/placement/region"); err == nil && r != "" {
		return r
	}
	return "us-east-1"
}
