package onenode

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// newCluster returns a cluster in a scratch folder that has the folders of a run.
func newCluster(t *testing.T) *Cluster {
	t.Helper()
	c, err := New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"pids", "logs", "etc", "node"} {
		if err := os.MkdirAll(c.run(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestStateLiesInTheSourceTreeUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	t.Setenv("EKSLOGS_CLUSTER", "")
	c, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(c.Repo, ".cluster"); c.State != want {
		t.Errorf("state %s, want %s", c.State, want)
	}
	t.Setenv("EKSLOGS_CLUSTER", "/somewhere")
	if c, err = New(""); err != nil || c.State != "/somewhere" {
		t.Errorf("state %s, %v; want /somewhere", c.State, err)
	}
}

func TestOutsideTheSourceTreeTheErrorSaysWhereToGo(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := New(""); err == nil || !strings.Contains(err.Error(), "change into it") {
		t.Errorf("error %v", err)
	}
}

func TestAProcessIsNotTakenForALaterOneWithItsPid(t *testing.T) {
	c := newCluster(t)
	if err := c.start("sleeper", nil, "sleep", "60"); err != nil {
		t.Fatal(err)
	}
	p, ok := c.process("sleeper")
	if !ok {
		t.Fatal("the process is not found by its pid file")
	}
	later := process{p.pid, p.start + 1}
	if later.alive() {
		t.Error("another start time passes for the same process")
	}
	later.end(0)
	if !p.alive() {
		t.Fatal("a process that is not ours was ended")
	}
	if killed := p.end(5 * time.Second); killed || p.alive() {
		t.Errorf("after SIGTERM: killed %v, alive %v", killed, p.alive())
	}
	if _, ok := c.process("sleeper"); ok {
		t.Error("an ended process passes for running")
	}
}

func TestAProcessThatIgnoresSIGTERMIsKilled(t *testing.T) {
	c := newCluster(t)
	trapped := filepath.Join(t.TempDir(), "trapped")
	if err := c.start("stubborn", nil, "sh", "-c", "trap '' TERM; touch "+trapped+"; while :; do sleep 0.1; done"); err != nil {
		t.Fatal(err)
	}
	p, _ := c.process("stubborn")
	for {
		if _, err := os.Stat(trapped); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if killed := p.end(100 * time.Millisecond); !killed || p.alive() {
		t.Errorf("killed %v, alive %v", killed, p.alive())
	}
}

func TestAwaitShowsTheLogOfAProcessThatHasEnded(t *testing.T) {
	c := newCluster(t)
	if err := c.start("short", nil, "sh", "-c", "echo the reason why; sleep 0.2"); err != nil {
		t.Fatal(err)
	}
	err := c.await(t.Context(), "short", "miracle", time.Minute, c.nodeReady)
	if err == nil || !strings.Contains(err.Error(), "the reason why") {
		t.Errorf("error %v", err)
	}
}

func TestCertificatesAreGoodForWhatTheyAreFor(t *testing.T) {
	c := newCluster(t)
	if err := c.makePKI("192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(readCert(t, c.pki("ca.crt")))
	for _, id := range identities("192.0.2.7") {
		usage := x509.ExtKeyUsageClientAuth
		if id.server {
			usage = x509.ExtKeyUsageServerAuth
		}
		cert := readCert(t, c.pki(id.name+".crt"))
		if _, err := cert.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("%s: %v", id.name, err)
		}
		for _, name := range append(id.ips, id.dns...) {
			if err := cert.VerifyHostname(name); err != nil {
				t.Errorf("%s: %v", id.name, err)
			}
		}
		if info, err := os.Stat(c.pki(id.name + ".key")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s.key: %v, %v", id.name, info.Mode(), err)
		}
	}
	before := readCert(t, c.pki("ca.crt"))
	if err := c.makePKI("192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	if !readCert(t, c.pki("ca.crt")).Equal(before) {
		t.Error("a second up made a new authority, which no running process trusts")
	}
}

func readCert(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestTemplatesFillInToWhatTheComponentsRead(t *testing.T) {
	c := newCluster(t)
	for _, name := range []string{"etcd.yaml", "egress.yaml", "kubelet.yaml"} {
		path := c.run("etc", name)
		if err := writeConfig(path, name, c.values()); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := yaml.UnmarshalStrict(b, &got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(string(b), "no value") {
			t.Errorf("%s has a value that is not filled in:\n%s", name, b)
		}
	}
}

func TestTheKubeconfigNamesTheAPIServerAndHoldsItsCredentials(t *testing.T) {
	c := newCluster(t)
	if err := c.makePKI("192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	if err := c.writeKubeconfig(c.Kubeconfig(), "admin"); err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("https://127.0.0.1:%d", APIPort); cfg.Host != want {
		t.Errorf("server %s, want %s", cfg.Host, want)
	}
	if len(cfg.CertData) == 0 || len(cfg.KeyData) == 0 || len(cfg.CAData) == 0 {
		t.Error("credentials are missing")
	}
}

func TestOnlyWhatWasMadeIsRemovedAndOnlyWhileItIsEmpty(t *testing.T) {
	c := newCluster(t)
	dir := t.TempDir()
	there, made, used := filepath.Join(dir, "there"), filepath.Join(dir, "made/deep"), filepath.Join(dir, "used")
	if err := os.Mkdir(there, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{there, made, used} {
		if err := c.makeDir(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(used, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.removeMade(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{there: true, filepath.Join(dir, "made"): false, used: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v; want it there: %v", path, err, want)
		}
	}
}

func TestEnterSaysThatTheClusterIsDown(t *testing.T) {
	if _, err := newCluster(t).Enter(t.Context(), "true"); err == nil || !strings.Contains(err.Error(), "cluster up") {
		t.Errorf("error %v", err)
	}
}

func TestShellQuoteKeepsEveryByte(t *testing.T) {
	const hostile = `a'b $(touch x) "c"`
	out, err := exec.Command("sh", "-c", "printf %s "+shellQuote(hostile)).Output()
	if err != nil || string(out) != hostile {
		t.Errorf("the shell read %q, %v", out, err)
	}
}

func TestTheKubernetesVersionComesFromGoMod(t *testing.T) {
	c := newCluster(t)
	v, err := c.kubernetesVersion()
	if err != nil || !strings.HasPrefix(v, "v1.") {
		t.Errorf("version %q, %v", v, err)
	}
	if flags := versionFlags("v1.34.4"); !strings.Contains(flags, "k8s.io/component-base/version.gitMinor=34") {
		t.Errorf("flags %s", flags)
	}
}
