package incident

import (
	"regexp"
	"strings"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// oom reads out-of-memory kills (mm/oom_kill.c, mm/memcontrol.c). One kill is told in
// several lines: who asked for memory, under which limit (since 4.19 in one line of
// key=value), and which process was killed. Until 5.0 the choice and the kill were
// two lines, and the killed process is the one in the second. memory.oom.group kills
// many processes: one incident.
type oom struct {
	nothing
	clock
	// kill is what the lines so far have told.
	kill struct {
		at         time.Time
		constraint string
		limited    cgroupPath // the cgroup whose limit it was
		victim     cgroupPath // the cgroup of the killed process
		memcg      bool       // "Memory cgroup out of memory"
		announced  bool       // "Kill process": the killed one is in the next line
	}
}

// killTime is how long the lines of one kill may take: the memory of the node is
// printed between them.
const killTime = 5 * time.Second

var (
	oomInvoked   = regexp.MustCompile(`^.{1,32} invoked oom-killer: `)
	oomSummary   = regexp.MustCompile(`^oom-kill:constraint=(?P<constraint>\w+),.*?(?:global_oom|oom_memcg=(?P<limited>[^,]*)),task_memcg=(?P<victim>[^,]*),task=`)
	oomTask      = regexp.MustCompile(`^Task in (?P<victim>\S+) killed as a result of limit of (?P<limited>\S+)`)
	oomAnnounced = regexp.MustCompile(`^(?P<memcg>Memory cgroup )?[Oo]ut of memory[^:]*: Kill process (?P<pid>\d+) \((?P<process>.*)\) score `)
	oomKilled    = regexp.MustCompile(`(?s)^(?:(?P<memcg>Memory cgroup )?[Oo]ut of memory[^:]*: )?Killed process (?P<pid>\d+)(?:, UID \d+,)? \((?P<process>.*?)\),?(?: UID[: ]\d+,?)? (?:total-vm|vsz):.*?(?:oom_score_adj:(?P<oom_score_adj>-?\d+))?$`)
	oomNobody    = regexp.MustCompile(`^(?:Out of memory|System is deadlocked on memory)\b.*no killable processes`)
)

func newOOM() *oom { return &oom{} }

func (*oom) Literals() []string {
	return []string{"invoked oom-killer", "oom-kill:constraint=", "killed as a result of limit of ", "ut of memory", "Killed process ", "deadlocked on memory"}
}

func (*oom) Sources() []host.Source { return kernelLog }

// nodeServices are what a node cannot do without. Without a cgroup to go by, the name
// of the killed process tells.
var nodeServices = map[string]bool{
	"kubelet": true, "containerd": true, "dockerd": true, "crio": true,
	"systemd": true, "systemd-journal": true, "systemd-udevd": true, "systemd-network": true, "systemd-resolve": true,
	"amazon-ssm-agen": true, "sshd": true, "nodeadm": true,
}

func (o *oom) Detect(r host.Record) []health.Finding {
	now := o.now(r)
	if now.Sub(o.kill.at) > killTime || now.Before(o.kill.at) {
		o.begin(now)
	}
	switch {
	case oomInvoked.MatchString(r.Message):
		o.begin(now)
	case oomNobody.MatchString(r.Message):
		return []health.Finding{finding(r, health.KernelReady, health.Warning, "SystemOOM", "",
			"The node is out of memory, and nothing is left that the kernel may kill", map[string]any{"scope": "global"})}
	}
	if g := groups(oomSummary, r.Message); g != nil {
		o.begin(now)
		o.kill.constraint = g["constraint"]
		o.kill.limited, o.kill.victim = cgroupPath(g["limited"]), cgroupPath(g["victim"])
		return nil
	}
	if g := groups(oomTask, r.Message); g != nil {
		o.kill.victim, o.kill.limited = cgroupPath(g["victim"]), cgroupPath(g["limited"])
		return nil
	}
	if g := groups(oomAnnounced, r.Message); g != nil {
		o.kill.announced, o.kill.memcg = true, g["memcg"] != ""
		return nil
	}
	if g := groups(oomKilled, r.Message); g != nil {
		return o.killed(r, g)
	}
	return nil
}

func (o *oom) begin(now time.Time) {
	o.kill.at = now
	o.kill.constraint, o.kill.limited, o.kill.victim = "", "", ""
	o.kill.memcg, o.kill.announced = false, false
}

// killed makes the finding, now that the killed process is known.
func (o *oom) killed(r host.Record, g map[string]string) []health.Finding {
	k := &o.kill
	own := strings.Contains(r.Message, "ut of memory") // one line tells it all
	memcg := k.memcg || g["memcg"] != "" || k.constraint == "CONSTRAINT_MEMCG" || !own && !k.announced && k.limited != ""
	delete(g, "memcg")
	fields := fieldsOf(g, "pid", "oom_score_adj")
	if k.constraint != "" {
		fields["constraint"] = k.constraint
	}
	if k.victim != "" {
		fields["task_memcg"] = clean(string(k.victim))
		k.victim.addTo(fields)
	}
	process, _ := fields["process"].(string)
	if !memcg {
		fields["scope"] = "global"
		return []health.Finding{finding(r, health.KernelReady, health.Warning, "SystemOOM", "",
			"The node is out of memory: the kernel killed "+process, fields)}
	}
	fields["scope"] = "cgroup"
	if k.limited != "" {
		fields["oom_memcg"] = clean(string(k.limited))
	}
	switch {
	case k.limited.inPod() && k.limited.podUID() == "":
		fields["scope"] = "kubepods"
		return []health.Finding{finding(r, health.KernelReady, health.Warning, "SystemOOM", clean(string(k.limited)),
			"The pods of the node together are out of the memory that they may use: the kernel killed "+process, fields)}
	case k.victim == "" && !nodeServices[process], k.victim.inContainer():
		return []health.Finding{finding(r, health.KernelReady, health.Info, "ContainerOOM", k.victim.podUID(),
			"A container reached its own limit of memory: the kernel killed "+process, fields)}
	}
	subject := clean(string(k.victim))
	if subject == "" {
		subject = process
	}
	return []health.Finding{finding(r, health.KernelReady, health.Warning, "SystemOOM", subject,
		"A service of the node is out of memory: the kernel killed "+process, fields)}
}
