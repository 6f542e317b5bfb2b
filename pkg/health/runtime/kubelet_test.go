package runtime

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
	"github.com/ekslogs/ekslogs/pkg/host/kubelet"
)

const kubeletStat = "77 (kubelet) S 1 77 77 0 -1 4194624 0 0 0 0 1 2 0 0 20 0 1 0 100 1000 10 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 7 0 0\n"

func certificateUntil(t *testing.T, end time.Time) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-time.Hour), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCertificates(t *testing.T) {
	day := 24 * time.Hour
	found := told{"KubeletCertificateExpired", health.Warning, ""}
	for name, tc := range map[string]struct {
		client, serving time.Duration
		want            []told
	}{
		"both are valid for long": {30 * day, 8 * day, nil},
		"the client's ends soon":  {6 * day, 30 * day, []told{found}},
		"the serving one is over": {30 * day, -day, []told{found}},
		"one finding for both":    {-day, -day, []told{found}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			h := checktest.Tree(t, map[string]string{
				"proc/77/stat": kubeletStat, "proc/77/cmdline": "/usr/bin/kubelet\x00--cert-dir\x00/certs\x00",
				"certs/kubelet-client-current.pem": certificateUntil(t, now.Add(tc.client)),
				"certs/kubelet-server-current.pem": certificateUntil(t, now.Add(tc.serving)),
			})
			o := options(h)
			c := newCertificates(o, &kubelet.Finder{Host: h, Processes: o.Processes})
			wantFindings(t, checktest.Run(t, c, h), tc.want...)
		})
	}
	h := checktest.Tree(t, map[string]string{"proc/77/stat": kubeletStat, "proc/77/cmdline": "kubelet\x00", "var/lib/kubelet/pki/kubelet.crt": "no PEM"})
	o := options(h)
	if _, err := newCertificates(o, &kubelet.Finder{Host: h, Processes: o.Processes}).Run(t.Context(), h); err == nil || errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want an error about what is no certificate", err)
	}
}

func TestTheRuntimeIsUnavailableAfterThreeSamples(t *testing.T) {
	o := options(nil)
	c := newCRI(o, nil)
	answer := errors.New("connection refused")
	running := kubelet.ErrAbsent
	c.socket = func(context.Context) (string, string, error) { return "/run/c.sock", "/host/run/c.sock", running }
	c.ask = func(_ context.Context, path string) error {
		if path != "/host/run/c.sock" {
			t.Errorf("asked %s", path)
		}
		return answer
	}
	if _, err := c.Run(t.Context(), nil); !errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want ErrNoData where no kubelet has run", err)
	}
	running = nil
	found := told{"ContainerRuntimeUnavailable", health.Warning, ""}
	wantFindings(t, checktest.Run(t, c, nil))
	wantFindings(t, checktest.Run(t, c, nil))
	wantFindings(t, checktest.Run(t, c, nil), found)
	running = kubelet.ErrAbsent // it ended since
	wantFindings(t, checktest.Run(t, c, nil), found)
	answer = nil
	wantFindings(t, checktest.Run(t, c, nil))
	answer = errors.New("connection refused")
	wantFindings(t, checktest.Run(t, c, nil))
}

func TestARuntimeThatDoesNotKnowTheQuestionAnswers(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "c.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	go func() { _ = s.Serve(l) }()
	if err := askVersion(t.Context(), socket); err != nil {
		t.Errorf("Unimplemented is an answer: %v", err)
	}
	s.Stop()
	if err := askVersion(t.Context(), socket); err == nil {
		t.Error("a server that has gone answered")
	}
}

func TestFrozen(t *testing.T) {
	uid := "0f2e4d6c-1111-2222-3333-444455556666"
	id := fmt.Sprintf("%064x", 0xabc)
	v2 := "sys/fs/cgroup/kubepods.slice/kubepods-pod0f2e4d6c_1111_2222_3333_444455556666.slice/cri-containerd-" + id + ".scope/cgroup.events"
	v1 := "sys/fs/cgroup/freezer/kubepods/burstable/pod" + uid + "/freezer.state"
	for name, tc := range map[string]struct {
		files map[string]string
		want  []told
	}{
		"version 2":            {map[string]string{v2: "populated 1\nfrozen 1\n"}, []told{{"ContainerFrozen", health.Warning, "container 000000000000"}}},
		"version 1":            {map[string]string{v1: "FROZEN\n"}, []told{{"ContainerFrozen", health.Warning, "pod " + uid}}},
		"nothing is frozen":    {map[string]string{v1: "THAWED\n", v2: "populated 1\nfrozen 0\n"}, nil},
		"outside the kubepods": {map[string]string{v1: "THAWED\n", "sys/fs/cgroup/freezer/vm/freezer.state": "FROZEN\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := checktest.Tree(t, tc.files)
			c := newFrozen(options(h))
			now := time.Unix(1e9, 0)
			c.now = func() time.Time { return now }
			wantFindings(t, checktest.Run(t, c, h))
			now = now.Add(5 * time.Minute)
			wantFindings(t, checktest.Run(t, c, h))
			now = now.Add(6 * time.Minute)
			wantFindings(t, checktest.Run(t, c, h), tc.want...)
		})
	}
	h := checktest.Tree(t, map[string]string{"sys/fs/cgroup/cgroup.controllers": ""})
	if _, err := newFrozen(options(h)).Run(t.Context(), h); !errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want ErrNoData where there are no pods", err)
	}
}
