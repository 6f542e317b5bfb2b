package onenode

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// program is a program of the machine and the Debian package that holds it.
type program struct {
	path string // a name to be found in PATH, or an absolute path
	pkg  string
}

// programs are what the cluster itself runs, and then what a node image has and a
// bundle of a node is made with.
func programs() []program {
	return []program{
		{"containerd", "containerd"},
		{"runc", "runc"},
		{cniPlugins + "/loopback", "containernetworking-plugins"},
		{journald, "systemd"},
		{"nsenter", "util-linux"},
		{"mount", "mount"},
		{"ctr", "containerd"},

		{"ip", "iproute2"},
		{"iptables", "iptables"},
		{"nft", "nftables"},
		{"ipset", "ipset"},
		{"ipvsadm", "ipvsadm"},
		{"conntrack", "conntrack"},
		{"ethtool", "ethtool"},
		{"lspci", "pciutils"},
		{"lsmod", "kmod"},
		{"ps", "procps"},
		{"lvs", "lvm2"},
		{"xfs_info", "xfsprogs"},
		{"nvme", "nvme-cli"},

		// Tests of the journal's reader make their fixtures with it.
		{"/lib/systemd/systemd-journal-remote", "systemd-journal-remote"},
	}
}

// cniPlugins is where Debian keeps the plugins of containernetworking-plugins.
const cniPlugins = "/usr/lib/cni"

// InstallPackages installs what the cluster and the tests need and this machine
// lacks, with apt-get.
func InstallPackages(ctx context.Context) error {
	var absent, pkgs []string
	for _, p := range programs() {
		if !present(p.path) {
			absent, pkgs = append(absent, p.path), append(pkgs, p.pkg)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	install := append([]string{"install", "-y", "--no-install-recommends"}, pkgs...)
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing: %s; there is no apt-get here, install them by other means (Debian's packages are: %s)",
			strings.Join(absent, ", "), strings.Join(pkgs, " "))
	}
	// The lists of a fresh image are empty, and old ones name files that are gone.
	if err := aptGet(ctx, "update"); err != nil {
		return err
	}
	return aptGet(ctx, install...)
}

func present(path string) bool {
	if strings.HasPrefix(path, "/") {
		_, err := os.Stat(path)
		return err == nil
	}
	_, err := exec.LookPath(path)
	return err == nil
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, out.Bytes())
	}
	return nil
}
