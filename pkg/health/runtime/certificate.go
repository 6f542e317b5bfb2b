package runtime

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/kubelet"
)

// certificateLimit is how long a certificate must still be valid. The kubelet renews
// them long before.
const certificateLimit = 7 * 24 * time.Hour

// certificates finds certificates of the kubelet that have expired or soon will.
type certificates struct {
	check.Info
	opts   Options
	finder *kubelet.Finder
}

func newCertificates(o Options, finder *kubelet.Finder) *certificates {
	return &certificates{info("kubelet-certificates", time.Hour, "KubeletCertificateExpired"), o, finder}
}

// certificate is a file, and when the certificate in it ends.
type certificate struct {
	file string
	ends time.Time
}

// Run implements check.Check.
func (c *certificates) Run(ctx context.Context, _ *host.Host) ([]health.Finding, error) {
	k, err := c.finder.Find(ctx)
	if errors.Is(err, kubelet.ErrAbsent) {
		return nil, check.ErrNoData
	}
	if err != nil {
		return nil, err
	}
	certs, err := readCertificates(k.Files, k.Certificates)
	if err != nil {
		return nil, err
	}
	if len(certs) == 0 {
		return nil, check.ErrNoData
	}
	return checkCertificates(c.opts, certs, time.Now()), nil
}

// readCertificates leaves out files that are not there: a kubelet has only some.
func readCertificates(h *host.Host, files []string) ([]certificate, error) {
	var out []certificate
	for _, file := range files {
		b, err := h.ReadFile(file, 1<<20)
		if err != nil {
			continue
		}
		ends, err := parseCertificate(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, certificate{file, ends})
	}
	return out, nil
}

// parseCertificate returns when the first certificate of a PEM file ends; those after
// it are of the authorities.
func parseCertificate(b []byte) (time.Time, error) {
	for {
		block, rest := pem.Decode(b)
		if block == nil {
			return time.Time{}, errors.New("no certificate in it")
		}
		if block.Type == "CERTIFICATE" {
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return time.Time{}, err
			}
			return cert.NotAfter, nil
		}
		b = rest
	}
}

// checkCertificates makes one finding: the certificates are renewed by one mechanism.
func checkCertificates(o Options, certs []certificate, now time.Time) []health.Finding {
	var bad []string
	first := time.Time{}
	for _, c := range certs {
		if c.ends.Sub(now) >= certificateLimit {
			continue
		}
		bad = append(bad, fmt.Sprintf("%s ends %s", c.file, c.ends.UTC().Format(time.RFC3339)))
		if first.IsZero() || c.ends.Before(first) {
			first = c.ends
		}
	}
	if len(bad) == 0 {
		return nil
	}
	message := "A certificate of the kubelet ends within 7 days and has not been renewed."
	if first.Before(now) {
		message = "A certificate of the kubelet has expired."
	}
	f := check.Finding(o.Catalog, "KubeletCertificateExpired", "", message)
	f.Evidence = strings.Join(bad, ", ")
	f.Fields = map[string]any{"not_after": first.UTC().Format(time.RFC3339)}
	return []health.Finding{f}
}
