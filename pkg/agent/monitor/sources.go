package monitor

import (
	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/journal"
	"github.com/ekslogs/ekslogs/pkg/host/kmsg"
	"github.com/ekslogs/ekslogs/pkg/host/tail"
)

// feed is a source of records and the conditions that cannot do without it. Sources
// that no condition requires are optional: being blind on them is told, and stops no
// heartbeat.
type feed struct {
	source   host.LogSource
	required []health.ConditionType
}

// units are the systemd units whose words the rules and detectors read.
func units() []string {
	return []string{
		"kubelet.service", "containerd.service", "docker.service", "sandbox-image.service",
		"ipamd.service", "aws-network-policy-agent.service", "kube-proxy.service", "nvidia-fabricmanager.service",
		"snapd.service", "nodeadm-run.service",
	}
}

// feeds are the logs of this node. The order is that in which they start.
func feeds(h *host.Host, c host.Checkpoints, kmsgFromSeq uint64) []feed {
	file := func(name string, patterns ...string) feed {
		return feed{source: tail.New(tail.Options{Name: "file:" + name, Host: h, Patterns: patterns, Checkpoints: c})}
	}
	return []feed{
		{
			source:   kmsg.New(kmsg.Options{Host: h, Checkpoints: c, FromSeq: kmsgFromSeq}),
			required: []health.ConditionType{health.KernelReady, health.StorageReady, health.AcceleratedHardwareReady},
		},
		{
			source:   journal.New(journal.Options{Host: h, Units: units(), Checkpoints: c}),
			required: []health.ConditionType{health.ContainerRuntimeReady},
		},
		file("cron", "/var/log/cron", "/var/log/cron.log"),
		file("messages", "/var/log/messages"),
		file("ipamd", "/var/log/aws-routed-eni/ipamd.log"),
		file("network-policy-agent", "/var/log/aws-routed-eni/network-policy-agent.log"),
		file("kube-proxy", "/var/log/pods/kube-system_kube-proxy-*/kube-proxy/*.log"),
	}
}
