package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The node's address of RFC 5737: nothing answers there.
const testNode = "192.0.2.1"

func TestEgressLeadsTheNodesAddressToLoopback(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "the kubelet")
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := dialEgress(t)
	target := net.JoinHostPort(testNode, port)
	if resp := request(t, conn, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n\r\n"); resp.StatusCode != http.StatusOK {
		t.Fatalf("CONNECT: %s", resp.Status)
	}
	resp := request(t, conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if body, _ := io.ReadAll(resp.Body); string(body) != "the kubelet" {
		t.Errorf("answer %q", body)
	}
}

func TestEgressServesNothingButConnect(t *testing.T) {
	resp := request(t, dialEgress(t), "GET http://example.test/ HTTP/1.1\r\nHost: example.test\r\n\r\n")
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %s", resp.Status)
	}
}

func TestEgressSaysThatATargetIsDead(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := dead.Addr().String()
	dead.Close()
	resp := request(t, dialEgress(t), "CONNECT "+addr+" HTTP/1.1\r\nHost: "+addr+"\r\n\r\n")
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), "refused") {
		t.Errorf("CONNECT to a closed port: %s: %s", resp.Status, body)
	}
}

// dialEgress runs a proxy until the test ends and connects to it.
func dialEgress(t *testing.T) net.Conn {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	go func() { _ = egress(socket, testNode) }()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		if time.Now().After(deadline) {
			t.Fatal(errors.Join(errors.New("the proxy does not listen"), err))
		}
	}
}

func request(t *testing.T, conn net.Conn, raw string) *http.Response {
	t.Helper()
	if _, err := io.WriteString(conn, raw); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(raw, " ")
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
