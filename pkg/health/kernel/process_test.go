package kernel

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

func manyZombies(n int) []proc.Stat {
	ps := []proc.Stat{{PID: 1, Comm: "systemd", State: 'S'}, {PID: 500, Comm: "containerd-shim", State: 'S', PPID: 1}}
	for i := range n {
		ps = append(ps, proc.Stat{PID: 1000 + i, Comm: "sh", State: 'Z', PPID: 500})
	}
	return ps
}

func TestZombiesMustLastForFiveSamplesInARow(t *testing.T) {
	o, streak := options(nil), 0
	var fs []health.Finding
	for i, n := range []int{25, 25, 19, 20, 25, 30, 40} {
		if streak, fs = checkZombies(o, streak, manyZombies(n)); len(fs) != 0 {
			t.Errorf("sample %d found %+v", i, fs)
		}
	}
	_, fs = checkZombies(o, streak, manyZombies(50))
	wantFindings(t, fs, told{"ExcessiveZombieProcesses", health.Warning, ""})
	if f := fs[0]; !strings.Contains(f.Message, "containerd-shim") || strings.Contains(f.Message, "50") || f.Fields["zombies"] != int64(50) {
		t.Errorf("message %q, fields %v", f.Message, f.Fields)
	}
}

func TestZombiesOfAFixtureTree(t *testing.T) {
	files := map[string]string{}
	for i := range 25 {
		files[fmt.Sprintf("proc/%d/stat", 100+i)] = fmt.Sprintf("%d (a) b) Z 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0\n", 100+i)
	}
	h := checktest.Tree(t, files)
	c := newZombies(options(h))
	for range c.Samples() - 1 {
		wantFindings(t, checktest.Run(t, c, h))
	}
	wantFindings(t, checktest.Run(t, c, h), told{"ExcessiveZombieProcesses", health.Warning, ""})
}

func TestStuckTaskIsTheSameOneThatNeverRan(t *testing.T) {
	o := options(nil)
	now := func(runs string, extra bool) map[process]waiting {
		m := map[process]waiting{
			{7, 1}: {comm: "kworker/u8:3+flush", pid: 7, wchan: "wait_on_page", slices: "12"},
			{8, 1}: {comm: "fio", pid: 8, wchan: "io_schedule", slices: runs},
		}
		if extra {
			m[process{9, 2}] = waiting{comm: "sh", pid: 9}
		}
		return m
	}
	var last map[process]waiting
	var fs []health.Finding
	for i := range stuckSamples - 1 {
		if last, fs = checkStuck(o, last, now(fmt.Sprint(i), i%2 == 0)); fs != nil {
			t.Errorf("sample %d found %+v", i, fs)
		}
	}
	last, fs = checkStuck(o, last, now("99", true))
	wantFindings(t, fs, told{"TaskStuckInD", health.Warning, "kworker"})
	if fs[0].Fields["wchan"] != "wait_on_page" {
		t.Errorf("fields %v", fs[0].Fields)
	}
	if last, fs = checkStuck(o, last, map[process]waiting{}); fs != nil || len(last) != 0 {
		t.Errorf("after it ran on: %v, %v", last, fs)
	}
	// The pid belongs to another process now.
	_, fs = checkStuck(o, map[process]waiting{{7, 1}: {samples: 9}}, map[process]waiting{{7, 2}: {comm: "x"}})
	wantFindings(t, fs)
}

func TestStuckTaskOfAFixtureTree(t *testing.T) {
	stat := "8 (dd) D 1 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0\n"
	files := map[string]string{
		"proc/loadavg": "1.00 1.00 1.00 1/80 11206\n", "proc/7/task/8/stat": stat,
		"proc/7/task/8/wchan": "rpc_wait_bit_killable", "proc/7/task/8/schedstat": "1 2 3\n",
	}
	h := checktest.Tree(t, files)
	c := newStuck(options(h))
	for range stuckSamples - 1 {
		wantFindings(t, checktest.Run(t, c, h))
	}
	fs := checktest.Run(t, c, h)
	wantFindings(t, fs, told{"TaskStuckInD", health.Warning, "dd"})
	if fs[0].Evidence != "1 tasks: dd[7] in rpc_wait_bit_killable" {
		t.Errorf("evidence %q", fs[0].Evidence)
	}
	c.scan = time.Now().Add(time.Hour) // until then only the tasks that are known
	wantFindings(t, checktest.Run(t, c, h), told{"TaskStuckInD", health.Warning, "dd"})
	files["proc/7/task/8/stat"] = strings.Replace(stat, " D ", " S ", 1)
	wantFindings(t, checktest.Run(t, c, checktest.Tree(t, files)))
	files["proc/7/task/8/stat"] = stat
	files["proc/loadavg"] = "0.10 1.00 1.00 1/80 11206\n"
	wantFindings(t, checktest.Run(t, c, checktest.Tree(t, files)))
}

func TestEnvironmentAsksOnceAboutEachProcessThatMayHaveTooMany(t *testing.T) {
	stat := func(pid, start, size int) string {
		fields := slices.Repeat([]string{"0"}, 50)
		fields[0], fields[19], fields[47], fields[48] = "S", fmt.Sprint(start), "100", fmt.Sprint(100+size)
		return fmt.Sprintf("%d (java) %s\n", pid, strings.Join(fields, " "))
	}
	h := checktest.Tree(t, map[string]string{
		"proc/10/stat": stat(10, 1, 200_000), "proc/11/stat": stat(11, 1, 200_000), "proc/12/stat": stat(12, 1, envSmall),
	})
	c := newEnvironment(options(h))
	var asked []int
	c.count = func(_ context.Context, _ *host.Host, pids []int) (map[int]int, error) {
		asked = append(asked, pids...)
		return map[int]int{10: 1001, 11: 1000}, nil
	}
	for range 3 {
		wantFindings(t, checktest.Run(t, c, h), told{"LargeEnvironment", health.Warning, "java"})
	}
	slices.Sort(asked)
	if !slices.Equal(asked, []int{10, 11}) {
		t.Errorf("asked about %v, want 10 and 11, once", asked)
	}
}

func TestEnvironmentLeavesAProcessAloneThatItHungAt(t *testing.T) {
	h := checktest.Tree(t, map[string]string{})
	c := newEnvironment(options(h))
	c.count = func(context.Context, *host.Host, []int) (map[int]int, error) {
		return map[int]int{1: 5}, errors.New("timed out")
	}
	ps := []proc.Stat{{PID: 1, Start: 1}, {PID: 2, Start: 1}, {PID: 3, Start: 1}}
	if err := c.ask(t.Context(), h, ps); err != nil {
		t.Fatal(err)
	}
	if n, ok := c.known[process{2, 1}]; !ok || n != -1 {
		t.Errorf("known %v, want 2 given up", c.known)
	}
	if _, ok := c.known[process{3, 1}]; ok {
		t.Error("3 was never asked about, and is given up")
	}
}

func TestEnvironmentOfARealProcess(t *testing.T) {
	h, err := host.New("/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.LookPath("grep"); err != nil {
		t.Skipf("needs grep: %v", err)
	}
	cmd := exec.Command("sleep", "60")
	for i := range 1500 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("V%d=1\n2", i))
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	counts, err := countVariables(t.Context(), h, []int{1 << 30, cmd.Process.Pid})
	if err != nil || counts[cmd.Process.Pid] != 1500 {
		t.Errorf("counted %v, %v, want 1500", counts, err)
	}
	fs := checktest.Run(t, newEnvironment(options(h)), h)
	if !slices.ContainsFunc(fs, func(f health.Finding) bool { return f.Subject == "sleep" }) {
		t.Errorf("findings %+v, want one about sleep", fs)
	}
}
