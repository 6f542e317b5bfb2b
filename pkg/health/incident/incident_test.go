package incident

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// What an incident is made of is tested with the texts of "node-agent replay". Here are
// the promises that no text shows.

func kernelLine(seconds float64, message string) host.Record {
	return host.Record{Source: host.SourceKmsg, Kernel: true, Message: message, At: epoch.Add(time.Duration(seconds * float64(time.Second)))}
}

func TestHolderGivesBackWhatIsDueInItsOrder(t *testing.T) {
	var h holder
	for i, name := range []string{"a", "b", "c"} {
		h.hold(name, epoch.Add(time.Duration(3-i)*time.Second), health.Finding{Reason: name})
	}
	if first := h.hold("a", epoch, health.Finding{Reason: "other"}); first.f.Reason != "a" {
		t.Errorf("the second line of an incident took the place of the first: %+v", first)
	}
	if due := h.Due(); !due.Equal(epoch.Add(time.Second)) {
		t.Errorf("due at %v", due)
	}
	reasons := func(fs []health.Finding) (out []string) {
		for _, f := range fs {
			out = append(out, f.Reason)
		}
		return out
	}
	if d := cmp.Diff([]string{"b", "c"}, reasons(h.Flush(epoch.Add(2*time.Second)))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"a"}, reasons(h.Flush(time.Time{}))); d != "" {
		t.Error(d)
	}
	if !h.Due().IsZero() {
		t.Error("something is still due")
	}
}

func TestCgroupPaths(t *testing.T) {
	const uid = "e8d39171-af9d-4c07-b03e-6e72aefc26a8"
	for path, want := range map[cgroupPath][3]string{
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pode8d39171_af9d_4c07_b03e_6e72aefc26a8.slice/cri-containerd-0123456789abcdef.scope": {"pod", uid, "0123456789abcdef"},
		"/kubepods/burstable/pode8d39171-af9d-4c07-b03e-6e72aefc26a8/0123456789abcdef":                                                                    {"pod", uid, "0123456789abcdef"},
		"/kubepods/burstable/pod0123456789abcdef0123456789abcdef":                                                                                         {"pod", "0123456789abcdef0123456789abcdef", ""},
		"/kubepods.slice": {"pod", "", ""},
		"/system.slice/docker-0123456789abcdef.scope": {"container", "", "0123456789abcdef"},
		"/docker/0123456789abcdef":                    {"container", "", "0123456789abcdef"},
		"/system.slice/containerd.service":            {"", "", ""},
		"/podruntime.slice/kubelet.service":           {"", "", ""},
		"/":                                           {"", "", ""},
	} {
		kind := ""
		switch {
		case path.inPod():
			kind = "pod"
		case path.inContainer():
			kind = "container"
		}
		if got := [3]string{kind, path.podUID(), path.containerID()}; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func TestDiskOfAPartition(t *testing.T) {
	for device, want := range map[string]string{
		"nvme0n1p1": "nvme0n1", "nvme1n3": "nvme1n3", "sda1": "sda", "sdaa12": "sdaa", "xvdf": "xvdf",
		"dm-0": "dm-0", "md127p1": "md127", "mmcblk0p2": "mmcblk0", "loop0": "loop0",
	} {
		if got := disk(device); got != want {
			t.Errorf("disk(%q) = %q, want %q", device, got, want)
		}
	}
}

func TestTitleCaseOfUnits(t *testing.T) {
	c := health.NewCatalog()
	for unit, want := range map[string]string{
		"containerd.service": "Containerd", "nvidia-fabricmanager.service": "Nvidia-Fabricmanager",
		"snap.kubelet-eks.daemon.service": "Snap.Kubelet-Eks.Daemon", "9p.service": "Unit9p", ".service": "Unit",
	} {
		got := titleCase(unit)
		if got != want {
			t.Errorf("titleCase(%q) = %q, want %q", unit, got, want)
		}
		if _, ok := c.Lookup(got + "RepeatedRestart"); !ok {
			t.Errorf("the catalogue does not know %sRepeatedRestart", got)
		}
	}
}

func TestFilesystemsThatTheNodeCanDoWithout(t *testing.T) {
	d := newFilesystem(Options{Critical: func(device string) (bool, bool) { return device == "nvme0n1p1", device != "nvme9n9" }})
	for device, want := range map[string]health.Severity{
		"nvme0n1p1": health.Fatal, "nvme1n1": health.Warning, "nvme9n9": health.Fatal, "loop3": health.Warning,
	} {
		got := d.Detect(kernelLine(1, "EXT4-fs ("+device+"): Remounting filesystem read-only"))
		if len(got) != 1 || got[0].Severity != want {
			t.Errorf("%s: got %+v, want %s", device, got, want)
		}
	}
}

func TestPCIeFloodIsToldOnceAnHour(t *testing.T) {
	d := newAER()
	warnings := 0
	for i := range 3 * 360 { // every 10 s for three hours
		for _, f := range d.Detect(kernelLine(float64(10*i), "pcieport 0000:00:1c.1: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)")) {
			if f.Severity == health.Warning {
				warnings++
			}
		}
	}
	if warnings != 3 {
		t.Errorf("%d warnings in three hours, want 3", warnings)
	}
}

func TestStateIsBounded(t *testing.T) {
	aer, nvme, cron, units, hw := newAER(), newNVMe(), newCron(), newUnits(), newHardware()
	for i := range 20000 {
		at := float64(i) / 1000
		aer.Detect(kernelLine(at, fmt.Sprintf("pcieport 0000:%04x:00.0: PCIe Bus Error: severity=Corrected, type=x", i)))
		aer.Detect(kernelLine(at, fmt.Sprintf("pcieport %04x:00:00.0: PCIe Bus Error: severity=Corrected, type=x", i)))
		nvme.Detect(kernelLine(at, fmt.Sprintf("nvme nvme%d: I/O 1 QID 2 timeout, reset controller", i)))
		cron.Detect(host.Record{Source: host.SourceFile, Message: fmt.Sprintf("Dec 31 23:59:01 n CROND[1]: (root) CMD (/bin/%d)", i)})
		units.Detect(host.Record{Source: host.SourceJournal, FromManager: true, Message: fmt.Sprintf("u%d.service: Main process exited, code=killed, status=9/KILL", i)})
		units.Detect(host.Record{Source: host.SourceJournal, FromManager: true, Message: fmt.Sprintf("Stopping u%d.service - x...", i)})
		hw.Detect(kernelLine(at, fmt.Sprintf("EDAC MC0: 1 UE x on y (page:0x%x offset:0x0)", i)))
	}
	for name, n := range map[string]int{
		"PCIe devices": len(aer.corrected), "NVMe resets": len(nvme.resets), "commands": len(cron.last),
		"stops and exits": len(units.stops) + len(units.exits), "pages": len(hw.pages.seen),
	} {
		if n > 8*maxHeld+1 {
			t.Errorf("%d %s are remembered", n, name)
		}
	}
}
