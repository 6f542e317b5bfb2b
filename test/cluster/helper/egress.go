package main

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"time"
)

// egress is an HTTP CONNECT proxy on a unix socket, the place that konnectivity
// takes in a real cluster. The API server reaches nodes through it. Connections to
// the node's address are made to 127.0.0.1 instead: the API server refuses to
// proxy to a loopback address, and the kubelet listens on no other.
func egress(socket, node string) error {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	proxy := func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only CONNECT is served", http.StatusMethodNotAllowed)
			return
		}
		host, port, err := net.SplitHostPort(r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if host == node {
			host = "127.0.0.1"
		}
		upstream, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), 10*time.Second)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer upstream.Close()
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer client.Close()
		if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			return
		}
		splice(client, upstream)
	}
	server := &http.Server{Handler: http.HandlerFunc(proxy), ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(l)
}

// splice copies both ways until one side ends. Then both are to be closed, which
// ends the other copy.
func splice(a, b net.Conn) {
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(a, b); done <- struct{}{} }()
	go func() { _, _ = io.Copy(b, a); done <- struct{}{} }()
	<-done
}
