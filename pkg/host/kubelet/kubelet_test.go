package kubelet

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

func tree(t *testing.T, files map[string]string) *host.Host {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestNewReadsWhatTheArgumentsName(t *testing.T) {
	for name, tc := range map[string]struct {
		files        map[string]string
		args         []string
		endpoint     string
		certificates []string
	}{
		"defaults": {nil, []string{"kubelet"}, "/run/containerd/containerd.sock",
			[]string{"/var/lib/kubelet/pki/kubelet.crt", "/var/lib/kubelet/pki/kubelet-client-current.pem"}},
		"config file": {map[string]string{"etc/k.yaml": "containerRuntimeEndpoint: unix:///var/run/crio/crio.sock\ntlsCertFile: /tls.crt\n", "tls.crt": ""},
			[]string{"kubelet", "--config=/etc/k.yaml"}, "/run/crio/crio.sock", []string{"/tls.crt", "/var/lib/kubelet/pki/kubelet-client-current.pem"}},
		"the drop-in comes after the file": {map[string]string{"etc/k.json": `{"containerRuntimeEndpoint":"unix:///a"}`, "etc/k.d/10.conf": "containerRuntimeEndpoint: unix:///b\n", "etc/k.d/note.txt": "containerRuntimeEndpoint: unix:///c\n"},
			[]string{"kubelet", "--config", "/etc/k.json", "--config-dir", "/etc/k.d"}, "/b", []string{"/var/lib/kubelet/pki/kubelet.crt", "/var/lib/kubelet/pki/kubelet-client-current.pem"}},
		"the argument comes before the file": {map[string]string{"etc/k.yaml": "containerRuntimeEndpoint: unix:///a\n"},
			[]string{"kubelet", "--config=/etc/k.yaml", "--container-runtime-endpoint=unix:///z", "--root-dir=/data"}, "/z", []string{"/data/pki/kubelet.crt", "/data/pki/kubelet-client-current.pem"}},
		"kubeconfig": {map[string]string{"etc/kube/conf": "users:\n- name: x\n  user: {client-certificate: pki/c.crt}\n", "c/kubelet-server-current.pem": ""},
			[]string{"kubelet", "--kubeconfig=/etc/kube/conf", "--cert-dir=/c"}, "/run/containerd/containerd.sock",
			[]string{"/c/kubelet-server-current.pem", "/c/kubelet-client-current.pem", "/etc/kube/pki/c.crt"}},
		"files that are not what they should be": {map[string]string{"etc/k.yaml": "{[", "etc/kube": "- 1"},
			[]string{"kubelet", "--config=/etc/k.yaml", "--kubeconfig=/etc/kube", "--config-dir=/etc/k.yaml"}, "/run/containerd/containerd.sock",
			[]string{"/var/lib/kubelet/pki/kubelet.crt", "/var/lib/kubelet/pki/kubelet-client-current.pem"}},
	} {
		t.Run(name, func(t *testing.T) {
			k := New(1, tree(t, tc.files), tc.args)
			if k.Endpoint != tc.endpoint {
				t.Errorf("endpoint %s, want %s", k.Endpoint, tc.endpoint)
			}
			if d := cmp.Diff(tc.certificates, k.Certificates); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestFindSeesTheKubeletsOwnMounts(t *testing.T) {
	const stat = "77 (kubelet) S 1 77 77 0 -1 4194624 0 0 0 0 1 2 0 0 20 0 1 0 100 1000 10 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 7 0 0\n"
	files := map[string]string{"proc/1/stat": "1 (init) S 0" + stat[len("77 (kubelet) S 1"):]}
	h := tree(t, files)
	if _, err := (&Finder{Host: h, Processes: proc.NewCache(h)}).Find(t.Context()); !errors.Is(err, ErrAbsent) {
		t.Errorf("%v, want ErrAbsent", err)
	}
	files["proc/77/stat"] = stat
	files["proc/77/cmdline"] = "kubelet\x00--config=/k.yaml\x00"
	files["proc/77/root/k.yaml"] = "containerRuntimeEndpoint: unix:///inside\n"
	h = tree(t, files)
	f := &Finder{Host: h, Processes: proc.NewCache(h)}
	k, err := f.Find(t.Context())
	if err != nil || k.PID != 77 || k.Endpoint != "/inside" || k.Files.Root() != h.Path("/proc/77/root") {
		t.Fatalf("%+v, %v", k, err)
	}
	if again, _ := f.Find(t.Context()); again != k {
		t.Error("it was looked at twice")
	}
}
