package collect

import "time"

func kernelTable() []entry {
	out := []entry{
		firstOf(file("kernel/dmesg.boot", "/var/log/dmesg"), kernelJournal("", "0")).in(laneCommand),
		command("kernel/dmesg.current", "dmesg").max(logBytes),
		command("kernel/dmesg.human.current", "dmesg", "-T").max(logBytes),
		kernelJournal("kernel/journal.current-boot.log", "0"),
		kernelJournal("kernel/journal.previous-boot.log", "-1").noneOn(1),
		glob("kernel/pstore/", "/sys/fs/pstore/", "*"),
		glob("kernel/pstore/systemd/", "/var/lib/systemd/pstore/", "*", "*/*"),
		command("kernel/uname.txt", "uname", "-a"),
		file("kernel/tainted.txt", "/proc/sys/kernel/tainted"),
		command("kernel/lsmod.txt", "lsmod").only(onModules),
		file("kernel/modules.txt", "/proc/modules"),
		fileOf("kernel/config.txt", kernelConfig),
	}
	for _, m := range []string{"lustre", "ip_vs", "ena", "efa", "nvidia", "neuron", "nvme", "xfs", "overlay", "nf_conntrack", "br_netfilter"} {
		out = append(out, command("modinfo/"+m, "modinfo", m).noneOn(1))
	}
	return out
}

func kernelConfig(e *env) []string {
	return []string{"/boot/config-" + hostFact(e.host, "/proc/sys/kernel/osrelease")}
}

// procFiles are files of /proc that are collected under their own names.
var procFiles = []string{
	"meminfo", "vmstat", "slabinfo", "buddyinfo", "pagetypeinfo", "zoneinfo", "interrupts", "softirqs", "loadavg",
	"mounts", "cpuinfo", "diskstats", "swaps", "partitions", "cgroups", "filesystems", "locks", "schedstat",
	"sys/fs/file-nr", "sys/kernel/pid_max", "sys/kernel/threads-max",
}

func procTable() []entry {
	out := []entry{
		file("system/procstat.txt", "/proc/stat"),
		function("system/allprocstat.txt", "/proc/*/stat", allStat).within(30 * time.Second).in(laneFile),
		function("system/io_throttling.txt", "/proc/*/stat: time blocked on I/O", ioDelays).within(30 * time.Second).in(laneFile),
		function("system/cpu_throttling.txt", "cgroup cpu.stat", cpuThrottling).within(30 * time.Second).in(laneFile),
		function("system/large_environments.txt", "/proc/*/environ: counts only", largeEnvironments).within(30 * time.Second).in(laneFile),
		files("system/pressure_cpu.txt", pressure("cpu")),
		files("system/pressure_memory.txt", pressure("memory")),
		files("system/pressure_io.txt", pressure("io")),
	}
	for _, f := range procFiles {
		out = append(out, file("system/proc/"+f+".txt", "/proc/"+f).within(defaultTimeout))
	}
	return out
}

// pressure names the stall information of the whole node and of all pods, in both
// versions and drivers of cgroups (kernel, accounting/psi.rst).
func pressure(of string) func(*env) []string {
	return func(*env) []string {
		return []string{
			"/proc/pressure/" + of,
			"/sys/fs/cgroup/kubepods.slice/" + of + ".pressure",
			"/sys/fs/cgroup/kubepods/" + of + ".pressure",
			"/sys/fs/cgroup/unified/kubepods/" + of + ".pressure",
			"/sys/fs/cgroup/system.slice/" + of + ".pressure",
		}
	}
}

func systemTable() []entry {
	return []entry{
		command("system/services.txt", "systemctl", "list-units", "--all", "--no-pager", "--full"),
		command("system/services-failed.txt", "systemctl", "list-units", "--state=failed", "--no-pager", "--full"),
		command("system/unit-files.txt", "systemctl", "list-unit-files", "--no-pager"),
		command("system/timers.txt", "systemctl", "list-timers", "--all", "--no-pager"),
		command("system/systemd-analyze.svg", "systemd-analyze", "plot"),
		command("system/systemd-analyze-blame.txt", "systemd-analyze", "blame", "--no-pager"),
		command("system/ps.txt", "ps", "fauxwww"),
		command("system/ps-threads.txt", "ps", "-eTF"),
		command("system/ps-wchan.txt", "ps", "-eo", "pid,ppid,state,wchan:40,etimes,comm"),
		command("system/top.txt", "top", "-b", "-n", "1"),
		command("system/free.txt", "free", "-m"),
		firstCommand("system/netstat.txt", []string{"netstat", "-plant"}, []string{"ss", "-plantm"}),
		command("sysctls/sysctl_all.txt", "sysctl", "-a"),
		firstCommand("system/pkglist.txt", []string{"rpm", "-qa"}, []string{"dpkg-query", "-W"}),
		firstOf(firstCommand("system/selinux.txt", []string{"sestatus"}, []string{"getenforce"}), file("", "/sys/fs/selinux/enforce", "/etc/selinux/config")),
		command("system/last_reboot.txt", "last", "-x", "-F", "reboot", "shutdown").noneOn(1),
		file("system/limits.conf", "/etc/security/limits.conf"),
		glob("sysctls/sysctl.d/", "/etc/sysctl.d/", "*.conf"),
		file("system/hosts.txt", "/etc/hosts"),
		firstCommand("system/time-sync.txt", []string{"chronyc", "-n", "tracking"}, []string{"timedatectl", "--no-pager"}),
		journal("system/chronyd.log", "chronyd", "chrony", "systemd-timesyncd"),
		journal("system/oomd.log", "systemd-oomd"),
		command("system/lscpu.txt", "lscpu"),
		command("system/numactl.txt", "numactl", "--hardware"),
		glob("system/dmi/", "/sys/class/dmi/id/", "sys_vendor", "product_name", "board_asset_tag", "bios_version", "bios_date"),
	}
}

// autoModeTable: what runs as pods elsewhere are units of the node in Auto Mode.
func autoModeTable() []entry {
	unit := func(path, unit string) entry { return journal("automode/"+path, unit).only(onAutoMode) }
	return []entry{
		unit("eks-healthchecker.txt", "eks-healthchecker"),
		unit("kube-proxy.txt", "kube-proxy"),
		unit("coredns.txt", "coredns"),
		// The name is misspelt where it is known.
		unit("coredns-boostrap.txt", "coredns-bootstrap"),
		unit("eks-ebs-csi-driver.txt", "eks-ebs-csi-driver"),
		unit("eks-node-monitoring-agent.txt", "eks-node-monitoring-agent"),
		unit("eks-pod-identity-agent.txt", "eks-pod-identity-agent"),
		unit("ipamd.txt", "ipamd"),
		unit("aws-network-policy-agent.txt", "aws-network-policy-agent"),
	}
}

func bottlerocketTable() []entry {
	return []entry{
		file("bottlerocket/application-inventory.json", "/usr/share/bottlerocket/application-inventory.json").only(onBottlerocket),
		command("bottlerocket/settings.json", "apiclient", "get", "settings", "os").only(onBottlerocket),
		producer("bottlerocket/logdog/", "command-output.log", "bottlerocket-logs.tar.gz", time.Minute, func(tmp string) []string {
			return []string{"logdog", "--output", tmp}
		}).only(onBottlerocket),
	}
}
