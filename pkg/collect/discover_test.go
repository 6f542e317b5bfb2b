package collect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// process adds a process to the fixture.
func (f fixture) process(pid int, comm string, argv ...string) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	f.write(dir+"comm", comm+"\n")
	f.write(dir+"cmdline", strings.Join(argv, "\x00")+"\x00")
	// Fields 3 to 52 of proc(5): 22 is the start, 42 the delay.
	stat := strings.Fields("S" + strings.Repeat(" 0", 49))
	stat[22-3], stat[42-3] = "777", "9"
	f.write(dir+"stat", fmt.Sprintf("%d (%s) %s\n", pid, comm, strings.Join(stat, " ")))
	f.write(dir+"environ", strings.Repeat("A_TOKEN=hunter2\x00", 2000))
}

func TestFilesOfTheKubeletAndContainerdAreFoundByTheirCommandLines(t *testing.T) {
	f := newFixture(t)
	f.process(500, "kubelet", "/usr/bin/kubelet", "--config", "/opt/k/config.yaml", "--kubeconfig=/opt/k/kubeconfig", "--root-dir=/data/kubelet", "--config-dir=/opt/k/conf.d", "--api-token=hunter2")
	f.process(40, "containerd", "containerd", "-c", "/opt/c/config.toml")
	f.process(41, "containerd", "containerd", "--config", "/nested/config.toml")
	f.write("/opt/k/config.yaml", "containerRuntimeEndpoint: unix:///other.sock\n")
	f.write("/opt/k/kubeconfig", "clusters:\n- cluster:\n    server: https://api.example:443\n    certificate-authority: pki/ca.crt\nusers:\n- user:\n    token: hunter2\n")
	f.write("/opt/k/conf.d/10-x.conf", "a: b\n")
	f.write("/opt/c/config.toml", "version = 2\n[debug]\n  address = \"/wrong\"\n[grpc]\n  address = '/run/c.sock'\n")
	f.write("/data/kubelet/cpu_manager_state", "{}")

	opts := Options{Host: f.host(), Output: "x.tar.gz"}
	e := newEnv(t.Context(), &opts)
	if e.ctrd.pid != 40 || e.ctrd.address != "/run/c.sock" || e.kubelet.server != "https://api.example:443" || e.kubelet.caFile != "/opt/k/pki/ca.crt" {
		t.Errorf("containerd %+v, kubelet %+v", e.ctrd, e.kubelet)
	}
	if e.live {
		t.Error("a tree of files is taken for a running host")
	}

	c := collectTest(t, Options{Host: f.host()}, fullTable())
	for path, from := range map[string]string{
		"kubelet/config.json":             "/opt/k/config.yaml",
		"kubelet/config.json.d/10-x.conf": "/opt/k/conf.d/10-x.conf",
		"kubelet/kubeconfig.yaml":         "/opt/k/kubeconfig",
		"kubelet/cpu_manager_state.json":  "/data/kubelet/cpu_manager_state",
		"containerd/config.toml":          "/opt/c/config.toml",
	} {
		if it := c.item(t, path); it.Status != bundle.StatusOK || it.From != from {
			t.Errorf("%s: %s from %q, want %q", path, it.Status, it.From, from)
		}
	}
	if got := c.text(t, "system/large_environments.txt"); !strings.Contains(got, "32000 2000 500 kubelet") {
		t.Errorf("large environments:\n%s", got)
	}
	if got := c.text(t, "system/io_throttling.txt"); !strings.Contains(got, "9 40 containerd") {
		t.Errorf("I/O delays:\n%s", got)
	}
	grepAll(t, c.dir, "hunter2")
}

func TestAddressOfContainerdComesFromItsOwnTable(t *testing.T) {
	for toml, want := range map[string]string{
		"":                            "",
		"[grpc]\naddress = \"/a\"":    "/a",
		"[ grpc ]\n  address='/b'\n":  "/b",
		"[ttrpc]\naddress = \"/c\"\n": "",
		"[grpc]\nuid = 0\n[grpc.x]\naddress = \"/d\"": "",
	} {
		if got := grpcAddress(toml); got != want {
			t.Errorf("%q: %q, want %q", toml, got, want)
		}
	}
}

func TestMountsThatMayHangAreAskedAlone(t *testing.T) {
	f := newFixture(t)
	f.write("/proc/1/mounts", "/dev/a / ext4 rw 0 0\nproc /proc proc rw 0 0\nsrv:/x /mnt/my\\040nfs nfs4 rw 0 0\n/dev/b /data xfs rw 0 0\ns3 /mnt/s3 fuse.mount-s3 rw 0 0\n/dev/b /data2 xfs rw 0 0\n")
	e := &env{host: f.host()}
	plan, err := perMount("df", "-h")(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"df", "-h", "/", "/data", "/data2"}, {"df", "-h", "/mnt/my nfs"}, {"df", "-h", "/mnt/s3"}}
	if !slices.EqualFunc(plan, want, slices.Equal) {
		t.Errorf("%q, want %q", plan, want)
	}
	plan, err = xfsCommands(t.Context(), e)
	if err != nil || len(plan) != 2 || plan[0][1] != "/data" {
		t.Errorf("%q, %v: want each xfs device once", plan, err)
	}
}

func TestThrottledControlGroupsAreListed(t *testing.T) {
	f := newFixture(t)
	f.write("/sys/fs/cgroup/kubepods.slice/a/cpu.stat", "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 9\n")
	f.write("/sys/fs/cgroup/kubepods.slice/b/cpu.stat", "nr_throttled 0\n")
	f.write("/sys/fs/cgroup/kubepods.slice/cpu.pressure", "some avg10=0.00\n")
	c := collectTest(t, Options{Host: f.host()}, fullTable())
	got := c.text(t, "system/cpu_throttling.txt")
	if !strings.Contains(got, "/kubepods.slice/a: ") || !strings.Contains(got, "nr_throttled 3") || strings.Contains(got, "/b") {
		t.Errorf("%s", got)
	}
	if got := c.text(t, "system/pressure_cpu.txt"); !strings.Contains(got, "### /sys/fs/cgroup/kubepods.slice/cpu.pressure\nsome avg10") {
		t.Errorf("%s", got)
	}
}

// What a program writes to a file for us is redacted as well, and does not stay.
func TestAProgramThatWritesAFile(t *testing.T) {
	var tmp string
	p := producer("gpu/", "exec.log", "report.log.gz", time.Minute, func(name string) []string {
		tmp = name
		return []string{"sh", "-c", "echo working; echo password=hunter2 | gzip > " + name}
	})
	c := collectTest(t, Options{Host: thisMachine(t)}, category("Device", p))
	if got := c.text(t, "gpu/exec.log"); got != "working\n" {
		t.Errorf("log %q", got)
	}
	if it := c.item(t, "gpu/report.log.gz"); it.Status != bundle.StatusOK || it.Redactions["password"] != 1 {
		t.Errorf("%+v", it)
	}
	grepAll(t, c.dir, "hunter2")
	if tmp == "" || thisMachine(t).Exists(tmp) {
		t.Errorf("%q is still there", tmp)
	}
}
