package network

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
	"github.com/ekslogs/ekslogs/pkg/host/systemd"
)

func stat(comm string) string {
	return "77 (" + comm + ") S 1 77 77 0 -1 4194624 0 0 0 0 1 2 0 0 20 0 1 0 100 1000 10 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 7 0 0\n"
}

func noData(t *testing.T, c check.Check, h *host.Host) {
	t.Helper()
	if fs, err := c.Run(t.Context(), h); !errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, %v, want ErrNoData", fs, err)
	}
}

func TestIPAMDOfTheVPCCNI(t *testing.T) {
	const pod = "var/log/pods/kube-system_aws-node-abcde_00000000-0000-0000-0000-000000000000/aws-vpc-cni-init/0.log"
	away := checktest.Tree(t, map[string]string{"proc/77/stat": stat("sh"), pod: ""})
	c := newIPAMD(options(away))
	now := time.Unix(1e9, 0)
	c.now = func() time.Time { return now }
	noData(t, c, away)
	now = now.Add(15 * time.Minute)
	noData(t, c, away)
	now = now.Add(time.Second)
	wantFindings(t, checktest.Run(t, c, away), told{"IPAMDNotRunning", health.Fatal, ""})

	replaced := checktest.Tree(t, map[string]string{"var/log/pods/kube-system_aws-node-fghij_00000000-0000-0000-0000-000000000001/aws-vpc-cni-init/0.log": ""})
	noData(t, c, replaced) // a new pod of the CNI starts the clock anew

	back := checktest.Tree(t, map[string]string{"proc/77/stat": stat(ipamdProcess), pod: ""})
	c.opts.Processes = proc.NewCache(back)
	wantFindings(t, checktest.Run(t, c, back))

	handler := checktest.Tree(t, map[string]string{"proc/77/stat": stat("sh"), "var/log/pods/kube-system_aws-node-termination-handler-abcde_00000000-0000-0000-0000-000000000000/aws-node-termination-handler/0.log": ""})
	noData(t, c, handler)
}

func TestAgentsOfAutoMode(t *testing.T) {
	h := checktest.Tree(t, map[string]string{"usr/lib/systemd/system/" + npaUnit: "", "usr/lib/systemd/system/" + ipamdUnit: ""})
	o := options(h)
	noData(t, newNPA(o), h) // not Auto Mode
	o.Platform.Auto = true
	now, unit := time.Unix(1e9, 0), systemd.Unit{Active: "active", Restarts: 40}
	read := func(context.Context, *host.Host, string) (systemd.Unit, error) { return unit, nil }
	n, i := newNPA(o), newIPAMD(o)
	n.unit, i.unit = read, read
	n.now, i.now = func() time.Time { return now }, func() time.Time { return now }
	wantFindings(t, checktest.Run(t, n, h))
	wantFindings(t, checktest.Run(t, i, h))
	unit.Restarts = 44
	wantFindings(t, checktest.Run(t, n, h))
	unit.Restarts = 49
	wantFindings(t, checktest.Run(t, n, h), told{"NPARepeatedlyRestart", health.Warning, npaUnit})
	unit = systemd.Unit{Active: "failed"} // and a count that fell
	noData(t, n, h)
	noData(t, i, h)
	now = now.Add(16 * time.Minute)
	wantFindings(t, checktest.Run(t, n, h), told{"NPANotRunning", health.Fatal, npaUnit})
	wantFindings(t, checktest.Run(t, i, h), told{"IPAMDNotRunning", health.Fatal, ""})
}
