package kernel

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
	"github.com/ekslogs/ekslogs/pkg/host"
)

const (
	oldBoot = "11111111-1111-1111-1111-111111111111"
	newBoot = "22222222-2222-2222-2222-222222222222"
)

func TestRebootIsJudgedByTheEndOfTheLastBoot(t *testing.T) {
	const busy = "1796078000.000100 node-a systemd[1]: Started kubelet.service.\n"
	unexpected := told{"UnexpectedReboot", health.Warning, ""}
	for name, tc := range map[string]struct {
		end  lastBoot
		want []told
	}{
		"power was cut":          {lastBoot{system: busy}, []told{unexpected}},
		"journal holds no trace": {lastBoot{}, nil},
		"reboot":                 {lastBoot{system: busy + "1796078001.2 node-a systemd[1]: Reached target reboot.target - System Reboot.\n"}, nil},
		"reboot, older words":    {lastBoot{system: busy + "1796078001.2 node-a systemd[1]: Reached target Reboot.\n"}, nil},
		"power off":              {lastBoot{system: busy + "1796078001.2 node-a systemd[1]: Reached target System Power Off.\n"}, nil},
		"taken over":             {lastBoot{system: busy + "1796078001.2 node-a systemd-shutdown[1]: Syncing filesystems and block devices.\n"}, nil},
		"shutting down":          {lastBoot{system: busy + "1796078001.2 node-a systemd[1]: Shutting down.\n"}, nil},
		"journal stopped":        {lastBoot{system: busy + "1796078001.2 node-a systemd-journald[300]: Journal stopped\n"}, nil},
		"a unit that speaks of shutdown": {
			lastBoot{system: busy + "1796078001.2 node-a systemd[1]: Started unattended-upgrades-shutdown.service.\n"}, []told{unexpected},
		},
		"panic": {
			lastBoot{system: busy, kernel: "1796078002.0 node-a kernel: Kernel panic - not syncing: Fatal exception in interrupt\n"},
			[]told{{"KernelPanic", health.Warning, ""}, unexpected},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantFindings(t, checkReboot(options(nil), oldBoot, newBoot, tc.end), tc.want...)
		})
	}
}

func bootTree(t *testing.T, boot string) *host.Host {
	t.Helper()
	return checktest.Tree(t, map[string]string{"proc/sys/kernel/random/boot_id": boot + "\n"})
}

func TestRebootIsToldOnceAndNeverAtTheFirstStart(t *testing.T) {
	o := options(nil)
	m := checktest.Memory{}
	o.Memory = m
	check := func() *reboot {
		c := newReboot(o)
		c.journal = func(_ context.Context, _ *host.Host, boot string) (lastBoot, error) {
			if boot != oldBoot {
				t.Errorf("asked for boot %s", boot)
			}
			return lastBoot{system: "1796078000.5 node-a systemd[1]: Started x.\n"}, nil
		}
		return c
	}
	wantFindings(t, checktest.Run(t, check(), bootTree(t, oldBoot)))
	wantFindings(t, checktest.Run(t, check(), bootTree(t, oldBoot)))

	after := bootTree(t, newBoot)
	c := check()
	fs := checktest.Run(t, c, after)
	wantFindings(t, fs, told{"UnexpectedReboot", health.Warning, ""})
	if f := fs[0]; f.Position != "reboot/"+newBoot || !f.At.Equal(time.UnixMicro(1796078000500000)) {
		t.Errorf("position %q at %v", f.Position, f.At)
	}
	// An agent that is killed at this point tells it again, from the same position.
	if fs := checktest.Run(t, check(), after); len(fs) != 1 || fs[0].Position != "reboot/"+newBoot {
		t.Errorf("after a crash: %+v", fs)
	}
	wantFindings(t, checktest.Run(t, c, after))
	wantFindings(t, checktest.Run(t, check(), after))
}

func TestLastBootOfARealJournal(t *testing.T) {
	const remote = "/usr/lib/systemd/systemd-journal-remote"
	h, err := host.New("/")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{remote, "journalctl"} {
		if _, err := h.LookPath(p); err != nil {
			t.Skipf("needs the program %s: %v", p, err)
		}
	}
	dir := t.TempDir()
	var b strings.Builder
	entry := func(fields ...string) {
		fmt.Fprintf(&b, "__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=%s\n%s\n\n",
			1796078000000000+b.Len(), 1000+b.Len(), strings.ReplaceAll(oldBoot, "-", ""), strings.Join(fields, "\n"))
	}
	entry("_PID=1", "SYSLOG_IDENTIFIER=systemd", "MESSAGE=Started kubelet.service.")
	entry("_PID=99", "_COMM=liar", "SYSLOG_IDENTIFIER=systemd-shutdown", "MESSAGE=Shutting down.")
	entry("_TRANSPORT=kernel", "SYSLOG_FACILITY=1", "MESSAGE=Kernel panic - not syncing: written by a pod")
	entry("_TRANSPORT=kernel", "SYSLOG_FACILITY=0", "SYSLOG_IDENTIFIER=kernel", "MESSAGE=Kernel panic - not syncing: hung_task: blocked tasks")
	cmd := exec.Command(remote, "--output="+filepath.Join(dir, "x.journal"), "-")
	cmd.Stdin = strings.NewReader(b.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	end, err := readLastBoot(t.Context(), h, oldBoot, "--directory="+dir)
	if err != nil {
		t.Fatal(err)
	}
	fs := checkReboot(options(nil), oldBoot, newBoot, end)
	wantFindings(t, fs, told{"KernelPanic", health.Warning, ""}, told{"UnexpectedReboot", health.Warning, ""})
	if got := fs[0].Fields["reason"]; got != "hung_task: blocked tasks" {
		t.Errorf("reason %q", got)
	}
	if end, err := readLastBoot(t.Context(), h, newBoot, "--directory="+dir); err != nil || end != (lastBoot{}) {
		t.Errorf("a boot that the journal does not hold: %+v, %v", end, err)
	}
}

func TestPstore(t *testing.T) {
	m := checktest.Memory{}
	h := checktest.Tree(t, map[string]string{
		"sys/fs/pstore/dmesg-erst-2": "Panic#1 Part2\n<6>[ 3097.1] before\n",
		"sys/fs/pstore/dmesg-erst-1": "Panic#1 Part1\n<0>[ 3098.275469] Kernel panic - not syncing: Test panic triggered by crash_test module\n",
		"var/lib/systemd/pstore/170/dmesg.txt": "Oops#1 Part1\n<6>[  201.650687] sysrq: SysRq : Trigger a crash\n" +
			"<1>[  201.654822] BUG: unable to handle kernel NULL pointer dereference at           (null)\n",
		"var/lib/systemd/pstore/171/dmesg.txt":       "Oops#1 Part1\n<1>[  1.2] BUG: unable to handle page fault\n",
		"var/lib/systemd/pstore/172/001/dmesg-efi-1": "Panic#2 Part1\n<6>[1.0] sysrq: Trigger a crash\n<0>[1.1] Kernel panic - not syncing: sysrq triggered crash\n",
	})
	o := options(nil)
	o.Memory = m
	c := newPstore(o)
	fs := checktest.Run(t, c, h)
	wantFindings(t, fs, told{"KernelPanic", health.Warning, ""}, told{"KernelPanic", health.Info, ""}, told{"KernelPanic", health.Info, ""})
	if got := fs[0].Fields["reason"]; got != "Test panic triggered by crash_test module" || fs[0].Position == fs[1].Position {
		t.Errorf("findings %+v", fs)
	}
	wantFindings(t, checktest.Run(t, c, h))
	wantFindings(t, checktest.Run(t, newPstore(o), h)) // after a restart
	wantFindings(t, checktest.Run(t, newPstore(options(nil)), checktest.Tree(t, nil)))
}
