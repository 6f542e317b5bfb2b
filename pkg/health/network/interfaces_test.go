package network

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
	"github.com/ekslogs/ekslogs/pkg/host/kubelet"
	"github.com/ekslogs/ekslogs/pkg/host/platform"
)

var lo = link{name: "lo", kind: "device", encap: "loopback", up: true, running: true}

// judge sees the links before and, a minute later, twice the links after.
func judge(o Options, before, after []link) []health.Finding {
	now := time.Unix(1e9, 0)
	s, _ := checkLinks(o, linkState{}, before, now)
	s, _ = checkLinks(o, s, after, now.Add(time.Minute))
	_, fs := checkLinks(o, s, after, now.Add(2*time.Minute))
	return fs
}

func TestInterfaces(t *testing.T) {
	eth := link{name: "eth0", kind: "device", encap: "ether", up: true, running: true, physical: true, defaultWay: true}
	down, dead := eth, eth
	down.up, down.running, down.defaultWay = false, false, false // its route has gone with it
	dead.running = false
	spare := link{name: "eth1", kind: "device", encap: "ether", physical: true}
	spareUp := spare
	spareUp.up, spareUp.running = true, true
	virtual := func(name, kind string) link { return link{name: name, kind: kind, encap: "ether"} }
	for name, tc := range map[string]struct {
		ec2           bool
		before, after []link
		want          []told
	}{
		"all is well":                       {false, []link{lo, eth}, []link{lo, eth}, nil},
		"the default route's link is down":  {false, []link{lo, eth}, []link{lo, down}, []told{{"InterfaceNotUp", health.Fatal, "eth0"}}},
		"it has no carrier":                 {false, []link{lo, eth}, []link{lo, dead}, []told{{"InterfaceNotRunning", health.Fatal, "eth0"}}},
		"a card that nobody has set up":     {true, []link{lo, eth, spare}, []link{lo, eth, spare}, nil},
		"an ENI that was at work":           {true, []link{lo, eth, spareUp}, []link{lo, eth, spare}, []told{{"InterfaceNotUp", health.Fatal, "eth1"}}},
		"a spare port outside EC2":          {false, []link{lo, eth, spareUp}, []link{lo, eth, spare}, nil},
		"NodeLocal DNSCache's dummy":        {true, []link{lo, eth}, []link{lo, eth, virtual("nodelocaldns", "dummy")}, nil},
		"kube-proxy's dummy":                {true, []link{lo, eth}, []link{lo, eth, virtual("kube-ipvs0", "dummy")}, nil},
		"bridges, tunnels and veths":        {true, []link{lo, eth}, []link{lo, eth, virtual("docker0", "bridge"), virtual("tunl0", "ipip"), virtual("cilium_vxlan", "vxlan"), virtual("eni0123456789a", "veth"), virtual("ifb0", "ifb")}, nil},
		"no loopback interface":             {false, []link{eth}, []link{eth}, []told{{"MissingLoopbackInterface", health.Fatal, "lo"}}},
		"the loopback interface is down":    {false, []link{lo, eth}, []link{{name: "lo", kind: "device"}, eth}, []told{{"MissingLoopbackInterface", health.Fatal, "lo"}}},
		"one that the config names is down": {false, []link{lo, eth}, []link{lo, eth, virtual("vess", "veth")}, []told{{"InterfaceNotUp", health.Fatal, "vess"}}},
		"one that the config excludes":      {true, []link{lo, {name: "skip0", kind: "device", encap: "ether", physical: true, up: true, running: true}}, []link{lo, {name: "skip0", kind: "device", encap: "ether", physical: true}}, nil},
		"an InfiniBand interface":           {true, []link{lo, {name: "ib0", kind: "device", encap: "infiniband", physical: true, up: true, running: true}}, []link{lo, {name: "ib0", kind: "device", encap: "infiniband", physical: true}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(nil)
			o.Platform = platform.Platform{EC2: tc.ec2}
			o.EssentialInterfaces = []string{"vess"}
			o.Excluded = []*regexp.Regexp{regexp.MustCompile("^skip")}
			wantFindings(t, judge(o, tc.before, tc.after), tc.want...)
		})
	}
}

func TestAnInterfaceMustBeAtFaultInTwoSamplesThirtySecondsApart(t *testing.T) {
	o := options(nil)
	o.EssentialInterfaces = []string{"vess"}
	links := []link{lo, {name: "vess", kind: "veth"}}
	now := time.Unix(1e9, 0)
	s, fs := checkLinks(o, linkState{}, links, now)
	wantFindings(t, fs)
	s, fs = checkLinks(o, s, links, now.Add(29*time.Second))
	wantFindings(t, fs)
	_, fs = checkLinks(o, s, links, now.Add(30*time.Second))
	wantFindings(t, fs, told{"InterfaceNotUp", health.Fatal, "vess"})
}

func TestForwarding(t *testing.T) {
	conf := map[string]string{"etc/cni/net.d/10-aws.conflist": `{"plugins":[{"type":"aws-cni"}]}`}
	if !hasPodNetwork(checktest.Tree(t, conf)) {
		t.Error("a pod network was not seen")
	}
	for _, text := range []string{`{"plugins":[{"type":"loopback"}]}`, `{"type":"loopback"}`, "no JSON"} {
		if hasPodNetwork(checktest.Tree(t, map[string]string{"etc/cni/net.d/10.conflist": text})) {
			t.Errorf("%s is no pod network", text)
		}
	}
	h := checktest.Tree(t, map[string]string{"proc/sys/net/ipv4/ip_forward": "0\n"})
	c := newForwarding(options(h), nil)
	pods, absent := true, error(nil)
	c.pods = func(context.Context) (bool, error) { return pods, absent }
	wantFindings(t, checktest.Run(t, c, h), told{"NetworkSysctl", health.Warning, "net.ipv4.ip_forward"})
	wantFindings(t, checkForwarding(c.opts, "1"))
	pods = false
	if _, err := c.Run(t.Context(), h); !errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want ErrNoData without a pod network", err)
	}
	absent = kubelet.ErrAbsent
	if _, err := c.Run(t.Context(), h); !errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want ErrNoData without a kubelet", err)
	}
}
