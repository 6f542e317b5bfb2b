// Package kubelet finds the kubelet of a host, and where it has its files and its
// container runtime: by its own arguments and config, not by guesses.
package kubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

// ErrAbsent says that no kubelet runs on the host.
var ErrAbsent = errors.New("no kubelet runs on this host")

// Kubelet is a kubelet that runs.
type Kubelet struct {
	PID int
	// Files is the host as the kubelet sees it: its mounts may not be those of the host.
	Files *host.Host
	// Endpoint is the path of the container runtime's socket, in Files.
	Endpoint string
	// Certificates are the files that may hold its client and serving certificates, in
	// Files.
	Certificates []string
}

// Finder finds the kubelet, and looks at its arguments once in its life.
type Finder struct {
	Host      *host.Host
	Processes *proc.Cache

	last  proc.Stat
	found *Kubelet
}

// Find returns the kubelet; the error is ErrAbsent when none runs. It is not safe for
// concurrent use.
func (f *Finder) Find(ctx context.Context) (*Kubelet, error) {
	t, err := f.Processes.Table(ctx, 5*time.Minute)
	if err != nil {
		return nil, err
	}
	best := proc.Stat{}
	for _, p := range t.Processes {
		if p.Comm == "kubelet" && p.State != 'Z' && (best.PID == 0 || p.Start < best.Start) {
			best = p
		}
	}
	if best.PID == 0 {
		return nil, ErrAbsent
	}
	if f.found != nil && best.PID == f.last.PID && best.Start == f.last.Start {
		return f.found, nil
	}
	args, err := proc.Args(ctx, f.Host, best.PID)
	if err != nil {
		return nil, err
	}
	files := f.Host
	if view, err := host.New(f.Host.Path(fmt.Sprintf("/proc/%d/root", best.PID))); err == nil {
		files = view
	}
	f.last, f.found = best, New(best.PID, files, args)
	return f.found, nil
}

// settings are the parts of KubeletConfiguration that matter here.
type settings struct {
	Endpoint string `json:"containerRuntimeEndpoint"`
	CertFile string `json:"tlsCertFile"`
}

// New reads what the arguments name. files is the host as the kubelet sees it.
func New(pid int, files *host.Host, args []string) *Kubelet {
	conf := settings{}
	readSettings(files, proc.Flag(args, "--config"), &conf)
	if dir := proc.Flag(args, "--config-dir"); dir != "" {
		drops, _ := files.ReadDir(dir)
		for _, d := range drops {
			if strings.HasSuffix(d.Name(), ".conf") {
				readSettings(files, path.Join(dir, d.Name()), &conf)
			}
		}
	}
	k := &Kubelet{PID: pid, Files: files}
	endpoint := cmp.Or(proc.Flag(args, "--container-runtime-endpoint"), conf.Endpoint, "unix:///run/containerd/containerd.sock")
	k.Endpoint = runPath(strings.TrimPrefix(endpoint, "unix://"))
	certDir := cmp.Or(proc.Flag(args, "--cert-dir"), path.Join(cmp.Or(proc.Flag(args, "--root-dir"), "/var/lib/kubelet"), "pki"))
	serving := cmp.Or(proc.Flag(args, "--tls-cert-file"), conf.CertFile, path.Join(certDir, "kubelet-server-current.pem"))
	if !files.Exists(serving) {
		serving = path.Join(certDir, "kubelet.crt") // signed by itself
	}
	k.Certificates = append([]string{serving, path.Join(certDir, "kubelet-client-current.pem")}, clientCertificate(files, proc.Flag(args, "--kubeconfig"))...)
	return k
}

// runPath writes /var/run, which is a link everywhere, as what it leads to: a link is
// not followed inside another root when a socket is connected to.
func runPath(p string) string {
	if rest, ok := strings.CutPrefix(p, "/var/run/"); ok {
		return "/run/" + rest
	}
	return p
}

func readSettings(files *host.Host, file string, into *settings) {
	if b, err := files.ReadFile(file, 1<<20); file != "" && err == nil {
		// What cannot be parsed the kubelet would not have started with.
		_ = yaml.Unmarshal(b, into)
	}
}

// clientCertificate returns the client certificate that a kubeconfig names.
func clientCertificate(files *host.Host, kubeconfig string) []string {
	var conf struct {
		Users []struct {
			User struct {
				Certificate string `json:"client-certificate"`
			} `json:"user"`
		} `json:"users"`
	}
	b, err := files.ReadFile(kubeconfig, 1<<20)
	if kubeconfig == "" || err != nil || yaml.Unmarshal(b, &conf) != nil {
		return nil
	}
	var out []string
	for _, u := range conf.Users {
		switch cert := u.User.Certificate; {
		case cert == "":
		case path.IsAbs(cert):
			out = append(out, cert)
		default:
			out = append(out, path.Join(path.Dir(kubeconfig), cert))
		}
	}
	return out
}
