package incident

import (
	"regexp"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// The systemd driver writes a pod's UID with underscores; the UID of a static pod is
// 32 digits without any.
var (
	podUID      = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}|[0-9a-f]{32})`)
	containerID = regexp.MustCompile(`(?:^|[-:/])([0-9a-f]{12,64})(?:\.scope)?$`)
	dockerPath  = regexp.MustCompile(`^/(?:docker|lxc|lxc\.payload\.[^/]*|machine\.slice|libpod_parent)/|/(?:docker|libpod|crio|cri-containerd)-[0-9a-f]{12,}`)
)

// cgroupPath says whose processes are in a cgroup.
type cgroupPath string

// inPod says that it belongs to a pod, or to the slice of all of them.
func (p cgroupPath) inPod() bool { return strings.Contains(string(p), "kubepods") }

// inContainer says that it belongs to a container, of a pod or not.
func (p cgroupPath) inContainer() bool { return p.inPod() || dockerPath.MatchString(string(p)) }

func (p cgroupPath) podUID() string {
	m := podUID.FindStringSubmatch(string(p))
	if m == nil {
		return ""
	}
	return strings.ReplaceAll(m[1], "_", "-")
}

func (p cgroupPath) containerID() string {
	m := containerID.FindStringSubmatch(string(p))
	if m == nil || len(m[1]) == 32 && strings.Contains(string(p), "pod"+m[1]) {
		return ""
	}
	return m[1]
}

// addTo adds what the path tells about pod and container to fields.
func (p cgroupPath) addTo(fields map[string]any) {
	if uid := p.podUID(); uid != "" {
		fields["pod_uid"] = uid
	}
	if id := p.containerID(); id != "" {
		fields["container"] = id
	}
}

// pids finds cgroups that reached their limit of processes (kernel/cgroup/pids.c). The
// kernel says so once for each cgroup: later silence proves nothing.
type pids struct{ nothing }

var pidsRejected = regexp.MustCompile(`^cgroup: fork rejected by pids controller in (?P<path>\S+)`)

func (*pids) Literals() []string     { return []string{"fork rejected by pids controller in "} }
func (*pids) Sources() []host.Source { return kernelLog }

func (*pids) Detect(r host.Record) []health.Finding {
	g := groups(pidsRejected, r.Message)
	if g == nil {
		return nil
	}
	path := cgroupPath(g["path"])
	fields := map[string]any{"cgroup": clean(g["path"])}
	path.addTo(fields)
	if path.inPod() {
		fields["cgroup_scope"] = "kubepods"
		return []health.Finding{finding(r, health.KernelReady, health.Info, "PidsLimitReached", path.podUID(),
			"A pod reached its own limit of processes", fields)}
	}
	fields["cgroup_scope"] = "system"
	severity := health.Warning
	if path.inContainer() {
		fields["cgroup_scope"], severity = "container", health.Info
	}
	return []health.Finding{finding(r, health.KernelReady, severity, "PidsLimitReached", clean(g["path"]),
		"The cgroup "+clean(g["path"])+" reached its limit of processes", fields)}
}
