package collect

import (
	"context"
	"time"
)

func networkingTable() []entry {
	return []entry{
		firstCommand("networking/ifconfig.txt", []string{"ip", "-s", "-d", "addr"}, []string{"ifconfig", "-a"}),
		command("networking/iplink.txt", "ip", "-s", "-d", "link"),
		command("networking/iproute.txt", "ip", "route", "show", "table", "all"),
		command("networking/ip6route.txt", "ip", "-6", "route", "show", "table", "all"),
		command("networking/iprule.txt", "ip", "rule", "show"),
		command("networking/ip6rule.txt", "ip", "-6", "rule", "show"),
		command("networking/neighbours.txt", "ip", "-s", "neigh"),
		command("networking/netns.txt", "ip", "netns"),
		command("networking/tc.txt", "tc", "-s", "qdisc"),
		sequence("networking/sockets.txt", []string{"ss", "-s"}, []string{"ss", "-tuanp"}),
		command("networking/nstat.txt", "nstat", "-az"),
		file("networking/proc/netdev.txt", "/proc/net/dev"),
		file("networking/proc/snmp.txt", "/proc/net/snmp"),
		file("networking/proc/netstat.txt", "/proc/net/netstat"),
		file("networking/proc/sockstat.txt", "/proc/net/sockstat"),
		file("networking/proc/softnet_stat.txt", "/proc/net/softnet_stat"),
		commands("networking/ethtool.txt", 3*time.Second, ethtoolCommands).max(32 << 20),
		file("networking/resolv.conf", "/etc/resolv.conf"),
		file("networking/nsswitch.conf", "/etc/nsswitch.conf"),
		sequence("networking/conntrack.txt", []string{"conntrack", "-S"}, []string{"conntrack", "-L"}).max(64 << 20),
		command("networking/conntrack6.txt", "conntrack", "-L", "-f", "ipv6").max(64 << 20),
		glob("networking/conntrack-limits/", "/proc/sys/net/netfilter/", "nf_conntrack_count", "nf_conntrack_max", "nf_conntrack_buckets"),

		probe("networking/get_api_server.txt", "GET /livez of the API server", apiServer),
		probe("networking/dns.txt", "look-ups of the API server and ECR by each name server", nameServers),
		command("networking/ping_amazon.com.txt", "ping", "-c", "2", "-i", "0.5", "-W", "2", "amazon.com").within(6 * time.Second).beside(),
		command("networking/ping_public.ecr.aws.txt", "ping", "-c", "2", "-i", "0.5", "-W", "2", "public.ecr.aws").within(6 * time.Second).beside(),

		journal("networking/configure-multicard-interfaces.txt", "configure-multicard-interfaces"),
		journal("networking/systemd-networkd.txt", "systemd-networkd"),
		journal("networking/systemd-resolved.txt", "systemd-resolved"),
		journal("networking/NetworkManager.txt", "NetworkManager"),
		command("networking/networkctl.txt", "networkctl", "status", "--all", "--no-pager", "-n", "20"),
		glob("networking/systemd-network/etc/", "/etc/systemd/network/", "*", "*/*"),
		glob("networking/systemd-network/run/", "/run/systemd/network/", "*", "*/*"),
		glob("networking/systemd-network/usr/", "/usr/lib/systemd/network/", "*", "*/*"),
		glob("networking/netplan/", "/etc/netplan/", "*.yaml"),
	}
}

// ethtoolCommands asks each device for its counters, driver and rings. The virtual
// ends of pods have nothing to say: only devices with hardware below are asked,
// and the others for the driver alone.
func ethtoolCommands(_ context.Context, e *env) ([][]string, error) {
	links, err := e.host.ReadDir("/sys/class/net")
	if err != nil {
		return nil, absent("no /sys/class/net")
	}
	var plan [][]string
	virtual := 0
	for _, l := range links {
		name := l.Name()
		if e.host.Exists("/sys/class/net/" + name + "/device") {
			for _, flag := range []string{"-i", "-S", "-g", "-l", "-k"} {
				plan = append(plan, []string{"ethtool", flag, name})
			}
		} else if virtual++; virtual <= 50 {
			plan = append(plan, []string{"ethtool", "-i", name})
		}
	}
	return plan, nil
}

func firewallTable() []entry {
	out := []entry{
		nftTables(),
		command("networking/ipvsadm.txt", "ipvsadm", "-Ln", "--stats").only(onIPVS),
		command("networking/ipset.txt", "ipset", "list").max(32 << 20),
	}
	for _, v := range []string{"", "6"} {
		tool := "ip" + v + "tables"
		name := "networking/" + tool
		out = append(out,
			command(name+".txt", tool, "-w", "3", "-n", "-v", "-L").max(32<<20),
			command(name+"-rules.txt", tool, "-w", "3", "-v", "-S").max(32<<20),
			command(name+"-save.txt", tool+"-save", "-c").max(32<<20),
		)
		for _, table := range []string{"filter", "mangle", "nat"} {
			out = append(out, command(name+"-"+table+".txt", tool, "-w", "3", "-t", table, "-n", "-v", "-L").max(32<<20))
		}
	}
	return out
}
