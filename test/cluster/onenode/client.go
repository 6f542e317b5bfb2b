package onenode

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// get asks a component as the administrator and returns the body of a 200.
func (c *Cluster) get(ctx context.Context, port int, path string) ([]byte, error) {
	cert, err := tls.LoadX509KeyPair(c.pki("admin.crt"), c.pki("admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(c.pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: roots,
		// The controllers make themselves a certificate that nobody has signed. It is
		// our own process on loopback that answers.
		InsecureSkipVerify: port != APIPort,
	}}
	defer transport.CloseIdleConnections()
	return fetch(ctx, &http.Client{Transport: transport}, fmt.Sprintf("https://127.0.0.1:%d%s", port, path))
}

func httpOK(ctx context.Context, url string) error {
	_, err := fetch(ctx, http.DefaultClient, url)
	return err
}

func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s: %.200s", url, resp.Status, body)
	}
	return body, nil
}

// nodeReady returns nil when the kubelet has said that the node is Ready.
func (c *Cluster) nodeReady(ctx context.Context) error {
	body, err := c.get(ctx, APIPort, "/api/v1/nodes/"+NodeName)
	if err != nil {
		return err
	}
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(body, &node); err != nil {
		return err
	}
	for _, cond := range node.Status.Conditions {
		if cond.Type == "Ready" && cond.Status == "True" {
			return nil
		}
		if cond.Type == "Ready" && cond.Message != "" {
			return errors.New(cond.Message)
		}
	}
	return errNotYet
}
