//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ekslogs/ekslogs/pkg/health/annotation"
	"github.com/ekslogs/ekslogs/test/fakenvml"
)

// gpuNodeScript makes the node look as if it had eight H100, in a mount namespace of
// the agent's own, and becomes the agent: its arguments.
const gpuNodeScript = `set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /sys/module
mkdir -p /sys/module/nvidia
echo 570.133.20 > /sys/module/nvidia/version
mount -t tmpfs tmpfs /sys/bus/pci/devices
for bus in 53 63 73 83 93 a3 b3 c3; do
	d=/sys/bus/pci/devices/0000:$bus:00.0
	mkdir $d
	echo 0x10de > $d/vendor
	echo 0x030200 > $d/class
	echo DRIVER=nvidia > $d/uevent
done
exec "$@"`

const gpuConfig = `apiVersion: ekslogs.io/v1alpha1
kind: NodeAgentConfig
checks:
  gpus: {interval: 1s}
  gpu-driver: {interval: 1s}
`

// startOnGPUNode runs the agent on a node with eight GPUs.
func startOnGPUNode(e *env, lib *fakenvml.Library) {
	e.t.Helper()
	e.apply("packaging/node-agent-host-rbac.yaml")
	dir := e.t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(gpuConfig), 0o600); err != nil {
		e.t.Fatal(err)
	}
	env := append([]string{"env", "LD_LIBRARY_PATH=" + filepath.Dir(lib.Path)}, lib.Env()...)
	argv := append(slices.Clone(env), "unshare", "-m", "sh", "-c", gpuNodeScript, "sh",
		program(e.Cluster, "node-agent"), "run", "--node-name", node, "--config", config, "--state-dir", filepath.Join(dir, "state"),
		"--metrics-address", "", "--trust-userspace-kmsg", "--kmsg-from-seq", strconv.FormatUint(nextKmsgSeq(e.t), 10))
	cmd, err := e.Enter(e.t.Context(), argv...)
	if err != nil {
		e.t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if e.t.Failed() {
			e.t.Logf("node-agent said:\n%s", log.Bytes())
		}
	})
}

// theNode returns the Node.
func theNode(e *env) *corev1.Node {
	e.t.Helper()
	var n corev1.Node
	if err := json.Unmarshal([]byte(e.kubectl("get", "node", node, "-o", "json")), &n); err != nil {
		e.t.Fatal(err)
	}
	return &n
}

// waitForGPUs waits until AcceleratedHardwareReady has a status and, if given, a
// reason.
func waitForGPUs(e *env, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
	e.t.Helper()
	var last corev1.NodeCondition
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		for _, c := range theNode(e).Status.Conditions {
			if c.Type != "AcceleratedHardwareReady" {
				continue
			}
			if last = c; c.Status == status && (reason == "" || c.Reason == reason) {
				return c
			}
		}
	}
	e.t.Fatalf("AcceleratedHardwareReady is %s %s (%s), want %s %s", last.Status, last.Reason, last.Message, status, reason)
	return last
}

func healthOf(e *env) annotation.Health {
	e.t.Helper()
	h, err := annotation.Decode(theNode(e).Annotations[annotation.Key])
	if err != nil {
		e.t.Fatal(err)
	}
	return h
}

func TestGPUs(t *testing.T) {
	lib, err := fakenvml.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	set := func(answers map[string]int) {
		t.Helper()
		if err := lib.Set(answers); err != nil {
			t.Fatal(err)
		}
	}
	e := newEnv(t)
	startOnGPUNode(e, lib)
	waitForGPUs(e, corev1.ConditionTrue, "")

	set(map[string]int{"count": 7})
	waitForGPUs(e, corev1.ConditionFalse, "NvidiaDeviceCountMismatch")
	set(nil)
	waitForGPUs(e, corev1.ConditionTrue, "")

	// The same Xid by NVML and by the log is one incident of that GPU, and the driver
	// ends it.
	const gpu2 = "GPU-00000000-0000-0000-0000-000000000002"
	set(map[string]int{"event": 1, "event.gpu": 2, "event.xid": 119})
	writeKmsg(t, "NVRM: Xid (PCI:0000:73:00): 119, pid=1, name=nvc:[driver], Timeout after 6s of waiting for RPC response from GPU2 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802a02 0x8).")
	waitForGPUs(e, corev1.ConditionFalse, "NvidiaXID119Error")
	var about []string
	for _, f := range healthOf(e).Findings {
		if strings.Contains(f.Reason, "XID119") {
			about = append(about, f.Subject)
		}
	}
	if want := gpu2 + " (0000:73:00)"; len(about) != 1 || about[0] != want {
		t.Errorf("findings about %q, want one about %q", about, want)
	}
	for _, g := range healthOf(e).GPUs {
		if want := annotation.VerdictOK; g.UUID == gpu2 && g.Verdict != annotation.VerdictReset || g.UUID != gpu2 && g.Verdict != want {
			t.Errorf("verdict on %s: %s", g.UUID, g.Verdict)
		}
	}
	writeKmsg(t, "NVRM: Xid (PCI:0000:73:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")
	waitForGPUs(e, corev1.ConditionTrue, "")

	// A driver that hangs takes the helper along and nothing else.
	set(map[string]int{"hang": 1})
	writeKmsg(t, "NVRM: Xid (PCI:0000:83:00): 79, GPU has fallen off the bus.")
	waitForGPUs(e, corev1.ConditionFalse, "NvidiaXID79Error")
	set(nil)
}

// writeKmsg writes a record to the kernel's log, which drops all but a few records
// of one open file.
func writeKmsg(t *testing.T, message string) {
	t.Helper()
	f, err := os.OpenFile("/dev/kmsg", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "<2>%s\n", message); err != nil {
		t.Fatal(err)
	}
}
