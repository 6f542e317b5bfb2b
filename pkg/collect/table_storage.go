package collect

import (
	"context"
	"slices"
	"strings"
	"time"
)

func storageTable() []entry {
	return []entry{
		file("storage/fstab.txt", "/etc/fstab"),
		sequence("storage/lsblk.txt", []string{"lsblk", "-f"}, []string{"lsblk", "-O", "-J"}),
		command("storage/mounts.txt", "mount"),
		file("storage/mountinfo.txt", "/proc/1/mountinfo"),
		commands("storage/df.txt", mountTimeout, perMount("df", "-P", "-h")).within(mountsTimeout).beside(),
		commands("storage/inodes.txt", mountTimeout, perMount("df", "-P", "-i")).within(mountsTimeout).beside(),
		command("storage/lvs.txt", "lvs", "-a", "-o", "+devices"),
		command("storage/pvs.txt", "pvs"),
		command("storage/vgs.txt", "vgs"),
		commands("storage/xfs.txt", 5*time.Second, xfsCommands).within(20 * time.Second),
		command("storage/nvme-list.txt", "nvme", "list").only(onNVMe),
		commands("storage/ebs-stats.txt", 3*time.Second, ebsStats).only(onEC2),
		commands("storage/pod_local_storage.txt", defaultTimeout, podStorage).beside(),
		command("storage/blkid.txt", "blkid"),
		command("storage/dmsetup.txt", "dmsetup", "ls", "--tree").only(onDeviceMapper),
		glob("storage/conf/", "/etc/", "multipath.conf", "lvm/lvm.conf"),
	}
}

const (
	mountTimeout  = 3 * time.Second
	mountsTimeout = 12 * time.Second
)

// mount is one line of /proc/mounts.
type mount struct{ device, dir, fstype string }

func (e *env) mounts() ([]mount, error) {
	text, err := e.host.ReadFile("/proc/1/mounts", 8<<20)
	if err != nil {
		text, err = e.host.ReadFile("/proc/mounts", 8<<20)
	}
	if err != nil {
		return nil, absent("no /proc/mounts")
	}
	var out []mount
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) >= 3 {
			out = append(out, mount{f[0], unescapeMount.Replace(f[1]), f[2]})
		}
	}
	return out, nil
}

// unescapeMount undoes what the kernel does to names in /proc/mounts (proc(5)).
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Filesystems that hold no data, and those that a dead server can hang.
var (
	noData = []string{"proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "debugfs", "tracefs", "securityfs", "bpf", "pstore", "configfs", "fusectl", "hugetlbfs", "autofs", "nsfs", "binfmt_misc", "rpc_pipefs", "efivarfs", "selinuxfs"}
	remote = []string{"nfs", "nfs4", "cifs", "smb3", "lustre", "ceph", "9p", "beegfs", "glusterfs"}
)

// maxRemote bounds how many remote mounts are asked, one by one.
const maxRemote = 20

// perMount plans a command for all local filesystems at once, and for each remote
// one alone: a dead server then costs its own time only.
func perMount(argv ...string) func(context.Context, *env) ([][]string, error) {
	return func(_ context.Context, e *env) ([][]string, error) {
		mounts, err := e.mounts()
		if err != nil {
			return nil, err
		}
		local := slices.Clone(argv)
		var plan [][]string
		seen := map[string]bool{}
		for _, m := range mounts {
			if slices.Contains(noData, m.fstype) || seen[m.dir] || !strings.HasPrefix(m.dir, "/") {
				continue
			}
			seen[m.dir] = true
			if slices.Contains(remote, m.fstype) || strings.HasPrefix(m.fstype, "fuse") {
				if len(plan) < maxRemote {
					plan = append(plan, append(slices.Clone(argv), m.dir))
				}
			} else if len(local) < 1000 {
				local = append(local, m.dir)
			}
		}
		if len(local) == len(argv) {
			return plan, nil
		}
		return append([][]string{local}, plan...), nil
	}
}

func xfsCommands(_ context.Context, e *env) ([][]string, error) {
	mounts, err := e.mounts()
	if err != nil {
		return nil, err
	}
	var plan [][]string
	seen := map[string]bool{}
	for _, m := range mounts {
		if m.fstype == "xfs" && !seen[m.device] {
			seen[m.device] = true
			plan = append(plan, []string{"xfs_info", m.dir}, []string{"xfs_db", "-r", "-c", "freesp -s", m.device})
		}
	}
	if len(plan) == 0 {
		return nil, absent("no xfs filesystem is mounted")
	}
	return plan, nil
}

// ebsStats asks each EBS volume for its own counters. The instance store has none.
func ebsStats(_ context.Context, e *env) ([][]string, error) {
	names, err := e.host.Glob("/dev/nvme*n1")
	if err != nil {
		return nil, err
	}
	var plan [][]string
	for _, n := range names {
		plan = append(plan, []string{"nvme", "amzn", "stats", n})
	}
	return plan, nil
}

// podStorage measures what pods keep on the node's own disk.
func podStorage(_ context.Context, e *env) ([][]string, error) {
	var plan [][]string
	for _, dir := range []string{e.kubelet.rootDir + "/pods", "/var/log/pods"} {
		if e.host.Exists(dir) {
			plan = append(plan, []string{"du", "-x", "-k", "-d", "1", dir})
		}
	}
	if len(plan) == 0 {
		return nil, absent("no folder of pods on this host")
	}
	return plan, nil
}
