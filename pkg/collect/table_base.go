package collect

import (
	"context"
	"encoding/json"
	"io"
)

func baseTable() []entry {
	return []entry{
		file("var_log/syslog", "/var/log/syslog").max(logBytes),
		file("var_log/messages", "/var/log/messages").max(logBytes),
		file("var_log/cron", "/var/log/cron"),
		file("var_log/cloud-init.log", "/var/log/cloud-init.log"),
		file("var_log/cloud-init-output.log", "/var/log/cloud-init-output.log"),
		file("var_log/user-data.log", "/var/log/user-data.log"),
		file("var_log/kube-proxy.log", "/var/log/kube-proxy.log").max(logBytes),
		glob("var_log/aws-routed-eni/", "/var/log/aws-routed-eni/", "*").max(logBytes),

		instanceFact("system/instance-id.txt", "instance_id", "meta-data/instance-id", "/var/lib/cloud/data/instance-id"),
		instanceFact("system/region.txt", "region", "meta-data/placement/region"),
		instanceFact("system/availability-zone.txt", "availability_zone", "meta-data/placement/availability-zone"),

		file("kernel/cmdline.txt", "/proc/cmdline"),
		file("system/os-release.txt", "/etc/os-release", "/usr/lib/os-release"),
		file("system/machine-id.txt", "/etc/machine-id"),
		file("system/proc/uptime.txt", "/proc/uptime"),
		command("system/uptime.txt", "uptime"),
		command("system/date.txt", "date", "+%Y-%m-%dT%H:%M:%S%z"),
		file("kernel/boot-id.txt", "/proc/sys/kernel/random/boot_id"),
		command("kernel/boots.txt", "journalctl", "--list-boots", "--no-pager", "-q"),
		file("kernel/version.txt", "/proc/version"),
	}
}

// instanceFact is a fact about the EC2 instance: from a file, or from what
// cloud-init found at boot, or from the metadata service.
func instanceFact(path, key, imdsPath string, from ...string) entry {
	known := function(path, "cloud-init's instance data", func(_ context.Context, e *env, w io.Writer) error {
		const file = "/run/cloud-init/instance-data.json"
		text, err := e.host.ReadFile(file, 4<<20)
		if err != nil {
			return absent("no %s", file)
		}
		var data struct {
			V1 map[string]any `json:"v1"`
		}
		if err := json.Unmarshal(text, &data); err != nil {
			return err
		}
		value, _ := data.V1[key].(string)
		if value == "" {
			return absent("%s has no %s", file, key)
		}
		_, err = io.WriteString(w, value+"\n")
		return err
	})
	asked := probe(path, "IMDSv2 "+imdsPath, func(ctx context.Context, e *env, w io.Writer) error {
		value, err := e.imds(ctx, imdsPath)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, value+"\n")
		return err
	})
	n := firstOf(known, asked)
	if len(from) > 0 {
		n = firstOf(file(path, from...), known, asked)
	}
	return n.within(defaultTimeout).beside()
}
