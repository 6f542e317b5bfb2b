//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// plant plants one fault of each kind in namespaces of its own, with the folder $1 to
// work in, and scans from within with the program $2. The process ids of a namespace
// have a limit of their own from Linux 6.14 on.
const plant = `
set -e
mkdir $1/full $1/ro
mount -t tmpfs -o size=4m tmpfs $1/full
head -c 4m /dev/zero > $1/full/x
mount -t tmpfs tmpfs $1/ro
mount -o remount,ro $1/ro

ip link set lo up
ip link add vess type veth peer name vpeer
ip link set vpeer up

sh -c 'for i in $(seq 25); do : & done; exec sleep 600' &
( for i in $(seq 1100); do export "PLANTED_$i=1"; done; exec tail -f /dev/null ) &

threads=$(cut -d' ' -f4 /proc/loadavg); threads=${threads#*/}
limit=$((threads * 100 / 85)); [ $limit -ge 400 ] || limit=400
while [ $((threads * 100)) -lt $((limit * 75)) ]; do sleep 600 & threads=$((threads + 1)); done
echo $limit > /proc/sys/kernel/pid_max
sleep 1

cat > $1/config.yaml <<END
monitors:
  storage: {essentialMounts: ["$1/full", "$1/ro"]}
  networking: {essentialInterfaces: [vess]}
END
exec $2 scan --config $1/config.yaml --exit-code -o json
`

func TestScanFindsWhatWasPlantedAndNothingElse(t *testing.T) {
	e := newEnv(t)
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-c", plant, "plant", dir, program(e.Cluster, "node-agent"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Fatalf("%v, want exit code 3 for a fatal finding\n%s", err, &stderr)
	}
	var report struct {
		Findings []struct{ Severity, Reason, Subject, Evidence, Action string } `json:"findings"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string
	for _, f := range report.Findings {
		if f.Evidence == "" || f.Action == "" {
			t.Errorf("%s has no evidence, or no advice: %+v", f.Reason, f)
		}
		if f.Reason != "ClockUnsynchronized" { // true of machines without a time service
			got = append(got, f.Severity+" "+f.Reason+" "+f.Subject)
		}
	}
	slices.Sort(got)
	want := []string{
		"Fatal InterfaceNotUp vess",
		"Warning ApproachingKernelPidMax ",
		"Warning DiskSpaceLow " + dir + "/full",
		"Warning ExcessiveZombieProcesses ",
		"Warning FilesystemReadOnly " + dir + "/ro",
		"Warning LargeEnvironment tail",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
