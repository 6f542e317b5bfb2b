package nvidia

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// Pod is a pod on this node.
type Pod struct {
	Namespace, Name, UID string
}

// String returns "namespace/name", or the UID while the name is unknown.
func (p Pod) String() string {
	if p.Name == "" {
		return p.UID
	}
	return p.Namespace + "/" + p.Name
}

// podCgroupRE is a pod's UID in a cgroup path, as the kubelet's two cgroup drivers
// write it: "/kubepods/burstable/pod1b2c…-…" and "…-pod1b2c…_….slice".
var podCgroupRE = regexp.MustCompile(`\bpod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})\b`)

// PodOf returns a function that finds the pod of a process on h, by the process's
// cgroup and the kubelet's log folders, which are named NAMESPACE_NAME_UID. Neither
// read can hang.
func PodOf(h *host.Host) func(pid int64) (Pod, bool) {
	return func(pid int64) (Pod, bool) {
		cgroup, err := h.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid), 64<<10)
		if err != nil {
			return Pod{}, false
		}
		m := podCgroupRE.FindSubmatch(cgroup)
		if m == nil {
			return Pod{}, false
		}
		return PodByUID(h, strings.ReplaceAll(string(m[1]), "_", "-")), true
	}
}

// PodByUID names a pod by the kubelet's log folders; the name is empty when it has none.
func PodByUID(h *host.Host, uid string) Pod {
	pod := Pod{UID: uid}
	// Neither namespaces nor names of pods hold an underscore.
	names, _ := h.Glob("/var/log/pods/*_*_" + pod.UID)
	if len(names) == 1 {
		parts := strings.Split(path.Base(names[0]), "_")
		pod.Namespace, pod.Name = parts[0], parts[1]
	}
	return pod
}

// blame adds the pod of the event's process to it, and remembers it when the code
// is one that a program can cause.
func (d *Detector) blame(e *event) {
	if e.kind != gpu || !e.record.Kernel {
		return
	}
	pod, ok := d.options.Suspects.podOf(e.pid())
	if !ok {
		return
	}
	e.fields["pod"], e.fields["pod_uid"] = pod.String(), pod.UID
	if applicationClass(e.code) {
		d.options.Suspects.saw(d.subject(e.kind, e.pci, e), pod, d.now)
	}
}
