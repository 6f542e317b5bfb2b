package network

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/vishvananda/netlink"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/host"
)

const (
	// interfacesKey is where the check remembers which interfaces were seen at work.
	interfacesKey = "check/interfaces"
	// downLimit is how long an interface must be found at fault, over two samples.
	downLimit = 30 * time.Second
)

// interfaces finds interfaces of the node itself that are down or have no carrier.
// Those of pods come and go, and many virtual ones are down by design.
type interfaces struct {
	check.Info
	opts  Options
	read  func(h *host.Host) ([]link, error)
	now   func() time.Time
	state linkState
}

// link is a network interface, as rtnetlink(7) tells of it.
type link struct {
	name, kind  string // kind is IFLA_INFO_KIND; "device" for none
	encap       string // the ARPHRD_ type in words
	up, running bool   // IFF_UP, and IFF_RUNNING: it has a carrier
	physical    bool   // it has a device behind it
	defaultWay  bool   // a default route leads through it
}

// linkState is what is known of earlier samples.
type linkState struct {
	// worked are the interfaces of the node that were seen at work in this boot.
	worked map[string]bool
	// since is since when an interface is at fault.
	since map[string]fault
}

type fault struct {
	reason string
	at     time.Time
	times  int
}

func newInterfaces(o Options) *interfaces {
	return &interfaces{
		Info: info("interfaces", downLimit, "MissingLoopbackInterface", "InterfaceNotUp", "InterfaceNotRunning"),
		opts: o, read: readLinks, now: time.Now,
	}
}

// Samples implements check.Sampler.
func (c *interfaces) Samples() int { return 2 }

// Run implements check.Check.
func (c *interfaces) Run(_ context.Context, h *host.Host) ([]health.Finding, error) {
	links, err := c.read(h)
	if err != nil {
		return nil, err
	}
	if c.state.worked == nil {
		c.state.worked = c.recall(h)
	}
	var fs []health.Finding
	c.state, fs = checkLinks(c.opts, c.state, links, c.now())
	c.remember(h)
	return fs, nil
}

func (c *interfaces) recall(h *host.Host) map[string]bool {
	worked := map[string]bool{}
	boot, err := h.BootID()
	if c.opts.Memory == nil || err != nil {
		return worked
	}
	if lines := strings.Split(c.opts.Memory.Get(interfacesKey), "\n"); lines[0] == boot {
		for _, name := range lines[1:] {
			worked[name] = true
		}
	}
	return worked
}

func (c *interfaces) remember(h *host.Host) {
	boot, err := h.BootID()
	if c.opts.Memory == nil || err != nil {
		return
	}
	lines := []string{}
	for name := range c.state.worked {
		lines = append(lines, name)
	}
	slices.Sort(lines)
	text := strings.Join(append([]string{boot}, lines...), "\n")
	if text != c.opts.Memory.Get(interfacesKey) {
		c.opts.Memory.Set(interfacesKey, text)
	}
}

// checkLinks judges the interfaces of the node: the one that the default route leads
// through, or has led through, network cards of an EC2 instance that were seen at work,
// and those that the config names. A card that nobody has ever set up is no fault.
func checkLinks(o Options, before linkState, links []link, now time.Time) (linkState, []health.Finding) {
	after := linkState{worked: before.worked, since: map[string]fault{}}
	if after.worked == nil {
		after.worked = map[string]bool{}
	}
	var out []health.Finding
	if lo := slices.IndexFunc(links, func(l link) bool { return l.name == "lo" }); lo < 0 || !links[lo].up {
		f := check.Finding(o.Catalog, "MissingLoopbackInterface", "lo", "The loopback interface is absent or down; programs of the node cannot talk to one another.")
		f.Evidence = "lo is absent"
		if lo >= 0 {
			f.Evidence = "lo is down"
		}
		f.Fields = map[string]any{"iface": "lo"}
		out = append(out, f)
	}
	for _, l := range links {
		essential := slices.Contains(o.EssentialInterfaces, l.name)
		if l.name == "lo" || !essential && !o.own(l) {
			continue
		}
		if l.up && l.running {
			if l.defaultWay || o.Platform.EC2 && l.physical {
				after.worked[l.name] = true
			}
			continue
		}
		if !essential && !l.defaultWay && !after.worked[l.name] {
			continue
		}
		reason, word := "InterfaceNotUp", "is down"
		if l.up {
			reason, word = "InterfaceNotRunning", "is up and has no carrier"
		}
		s := before.since[l.name]
		if s.reason != reason {
			s = fault{reason: reason, at: now}
		}
		s.times++
		after.since[l.name] = s
		if s.times < 2 || now.Sub(s.at) < downLimit && !o.Fresh {
			continue
		}
		f := check.Finding(o.Catalog, reason, l.name, fmt.Sprintf("The network interface %s, which the node needs, %s.", l.name, word))
		f.Evidence = fmt.Sprintf("%s (%s) %s, in %d samples", l.name, l.kind, word, 2)
		f.Fields = map[string]any{"iface": l.name, "kind": l.kind}
		out = append(out, f)
	}
	return after, out
}

// own reports whether an interface can be the node's own by its kind and name.
func (o Options) own(l link) bool {
	if l.encap == "infiniband" {
		return false
	}
	switch l.kind {
	case "device", "bond", "team", "vlan", "netvsc", "failover", "ipvlan", "macvlan":
	default: // dummy, bridge, veth, tunnels, ifb, ...
		return false
	}
	for _, re := range o.Excluded {
		if re.MatchString(l.name) {
			return false
		}
	}
	return l.physical || l.defaultWay || l.kind != "device"
}

// readLinks asks the kernel. An interface belongs to the network of the agent, which is
// the host's.
func readLinks(h *host.Host) ([]link, error) {
	if !sameMachine(h) {
		return nil, check.ErrNoData
	}
	list, err := netlink.LinkList()
	if err != nil {
		return nil, fmt.Errorf("interfaces: %w", err)
	}
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("routes: %w", err)
	}
	ways := map[int]bool{}
	for _, r := range routes {
		if r.Dst != nil && !r.Dst.IP.IsUnspecified() {
			continue
		}
		if r.Dst != nil {
			if ones, _ := r.Dst.Mask.Size(); ones != 0 {
				continue
			}
		}
		ways[r.LinkIndex] = true
		for _, hop := range r.MultiPath {
			ways[hop.LinkIndex] = true
		}
	}
	out := make([]link, 0, len(list))
	for _, l := range list {
		a := l.Attrs()
		out = append(out, link{
			name: a.Name, kind: l.Type(), encap: a.EncapType,
			up: a.RawFlags&unix.IFF_UP != 0, running: a.RawFlags&unix.IFF_RUNNING != 0,
			physical: h.Exists("/sys/class/net/" + a.Name + "/device"), defaultWay: ways[a.Index],
		})
	}
	return out, nil
}

// sameMachine reports whether a host is the machine that this process runs on, and not
// a copy of its files: what is asked of the kernel is about this one.
func sameMachine(h *host.Host) bool {
	if h.Root() == "/" {
		return true
	}
	here, err := host.New("/")
	if err != nil {
		return false
	}
	mine, err1 := here.BootID()
	its, err2 := h.BootID()
	return err1 == nil && err2 == nil && mine == its
}
