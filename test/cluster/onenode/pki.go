package onenode

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// lifetime of every certificate: a cluster for tests is not kept longer.
const lifetime = 30 * 24 * time.Hour

// authority signs the cluster's certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// identity is a certificate to be made: NAME.crt and NAME.key.
type identity struct {
	name, user, group string
	server            bool
	ips, dns          []string
}

// identities are the certificates of all components. The subjects are those that
// the API server's built-in roles are bound to.
func identities(nodeIP string) []identity {
	node := "system:node:" + NodeName
	return []identity{
		{
			name: "apiserver", user: "kube-apiserver", server: true,
			ips: []string{"127.0.0.1", serviceClusterIP},
			dns: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		},
		{name: "apiserver-kubelet-client", user: "kube-apiserver-kubelet-client", group: "system:masters"},
		{name: "admin", user: "admin", group: "system:masters"},
		{name: "kube-controller-manager", user: "system:kube-controller-manager"},
		{name: "kube-scheduler", user: "system:kube-scheduler"},
		{name: "kubelet", user: node, group: "system:nodes"},
		{
			name: "kubelet-serving", user: node, group: "system:nodes", server: true,
			ips: []string{nodeIP, "127.0.0.1"}, dns: []string{NodeName},
		},
	}
}

// makePKI makes the authority, the service account key and every certificate.
// What a former run of up made is kept, so that running processes stay trusted.
func (c *Cluster) makePKI(nodeIP string) error {
	if err := os.MkdirAll(c.run("pki"), 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(c.pki("complete")); err == nil {
		return nil
	}
	ca, err := c.newAuthority()
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	for _, id := range identities(nodeIP) {
		if err := c.issue(ca, id); err != nil {
			return fmt.Errorf("certificate %s: %w", id.name, err)
		}
	}
	if err := c.newServiceAccountKey(); err != nil {
		return fmt.Errorf("service account key: %w", err)
	}
	return os.WriteFile(c.pki("complete"), nil, 0o600)
}

func (c *Cluster) newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "ekslogs-test-ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:     true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	// The controller manager signs certificate requests with it as well.
	if err := writeKey(c.pki("ca.key"), key); err != nil {
		return nil, err
	}
	return &authority{cert, key}, writePEM(c.pki("ca.crt"), "CERTIFICATE", der)
}

func (c *Cluster) issue(ca *authority, id identity) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: id.user},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames:    id.dns,
	}
	if id.server {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	if id.group != "" {
		template.Subject.Organization = []string{id.group}
	}
	for _, ip := range id.ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return err
	}
	if err := writePEM(c.pki(id.name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(c.pki(id.name+".key"), key)
}

// newServiceAccountKey makes the pair that signs and checks service account tokens.
func (c *Cluster) newServiceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	if err := writePEM(c.pki("sa.pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(c.pki("sa.key"), key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b) // never fails: crypto/rand ends the process instead
	return new(big.Int).SetBytes(b)
}
