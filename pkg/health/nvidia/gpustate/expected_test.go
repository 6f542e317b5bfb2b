package gpustate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/host"
)

// machine is a fixture tree.
func machine(t *testing.T, files map[string]string) *host.Host {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func pciFiles(files map[string]string, address, vendor, class, driver string) {
	dir := "sys/bus/pci/devices/" + address + "/"
	files[dir+"vendor"], files[dir+"class"] = vendor+"\n", class+"\n"
	files[dir+"uevent"] = "PCI_CLASS=30200\nDRIVER=" + driver + "\n"
}

func ec2(instanceType string) map[string]string {
	return map[string]string{
		"sys/devices/virtual/dmi/id/sys_vendor":   "Amazon EC2\n",
		"sys/devices/virtual/dmi/id/product_name": instanceType + "\n",
	}
}

func TestExpectCountsWhatTheDriverMayUse(t *testing.T) {
	files := ec2("g5.12xlarge")
	pciFiles(files, "0000:00:1b.0", "0x10de", "0x030200", "nvidia")
	pciFiles(files, "0000:00:1c.0", "0x10de", "0x030000", "")
	pciFiles(files, "0000:00:1d.0", "0x10de", "0x040300", "snd_hda_intel") // its audio
	pciFiles(files, "0000:00:1e.0", "0x10de", "0x068000", "nvidia")        // an NVSwitch
	pciFiles(files, "0000:00:03.0", "0x1d0f", "0x030000", "")              // EC2's console
	want := Expected{PCI: 2, InstanceType: 4, TypeName: "g5.12xlarge"}
	if got, err := Expect(machine(t, files), 0); err != nil || got != want {
		t.Errorf("Expect = %+v, %v; want %+v", got, err, want)
	}
	if got, err := Expect(machine(t, files), 3); err != nil || got.Configured != 3 || got.InstanceType != 0 {
		t.Errorf("with a setting: %+v, %v", got, err)
	}
	if got, err := Expect(machine(t, files), -1); err != nil || got.InstanceType != 0 || got.PCI != 2 {
		t.Errorf("turned off: %+v, %v", got, err)
	}
	pciFiles(files, "0000:00:1f.0", "0x10de", "0x030200", "vfio-pci")
	want = Expected{PCI: 2}
	if got, err := Expect(machine(t, files), 0); err != nil || got != want {
		t.Errorf("with one in a virtual machine: %+v, %v; want %+v", got, err, want)
	}
}

func TestExpectWithoutPCI(t *testing.T) {
	if got, err := Expect(machine(t, nil), 0); err == nil {
		t.Errorf("Expect = %+v, want an error", got)
	}
}

func TestInstanceTable(t *testing.T) {
	for name, want := range map[string]int{
		"p4d.24xlarge": 8, "p5.48xlarge": 8, "g4dn.12xlarge": 4, "g5g.16xlarge": 2, "p6-b200.48xlarge": 8,
		"m5.large": 0, "": 0, "type": 0,
	} {
		if got := InstanceGPUs(name); got != want {
			t.Errorf("InstanceGPUs(%q) = %d, want %d", name, got, want)
		}
	}
	if got := InstanceType(machine(t, map[string]string{"sys/devices/virtual/dmi/id/sys_vendor": "QEMU", "sys/devices/virtual/dmi/id/product_name": "p5.48xlarge"})); got != "" {
		t.Errorf("a machine that is not EC2's is a %q", got)
	}
}
