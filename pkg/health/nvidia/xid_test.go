package nvidia

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ekslogs/ekslogs/pkg/health"
)

func TestXidLayouts(t *testing.T) {
	for _, tt := range []struct {
		name, line string
		want       xidLine
	}{
		{"R418, no pid", "NVRM: Xid (PCI:0000:01:00): 13, Graphics Exception: ESR 0x4041b0=0x0",
			xidLine{pci: "0000:01:00", code: 13, text: "Graphics Exception: ESR 0x4041b0=0x0"}},
		{"no PCI: before the address", "NVRM: Xid (0000:03:00): 43, Ch 00000010",
			xidLine{pci: "0000:03:00", code: 43, text: "Ch 00000010"}},
		{"no domain", "NVRM: Xid (PCI:03:00): 43, Ch 00000010", xidLine{pci: "03:00", code: 43, text: "Ch 00000010"}},
		{"function, upper case, domain", "NVRM: Xid (PCI:000A:C3:1C.0): 31, pid=7, name=a, Ch 1",
			xidLine{pci: "000a:c3:1c.0", code: 31, pid: 7, process: "a", text: "Ch 1"}},
		{"pid only", "NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row",
			xidLine{pci: "0000:10:1c", code: 63, pid: 1896, text: "Row Remapper: New row"}},
		{"unknown pid and name", "NVRM: Xid (PCI:0000:0a:00): 45, pid='<unknown>', name=<unknown>, Ch 00000008",
			xidLine{pci: "0000:0a:00", code: 45, text: "Ch 00000008"}},
		{"unknown name in quotes", "NVRM: Xid (PCI:0000:0a:00): 45, pid=<unknown>, name='<unknown>', Ch 00000008",
			xidLine{pci: "0000:0a:00", code: 45, text: "Ch 00000008"}},
		{"MIG, both instances", "NVRM: Xid (PCI:0000:01:00 GPU-I:00 GPU-CI:03): 94, pid=7194, name=x, Contained: SM (0x1)",
			xidLine{pci: "0000:01:00", gpuInstance: 0, computeInstance: 3, code: 94, pid: 7194, process: "x", text: "Contained: SM (0x1)"}},
		{"colon and brackets in the name", "NVRM: Xid (PCI:0002:00:00): 119, pid=1, name=nvc:[driver], Timeout after 6s",
			xidLine{pci: "0002:00:00", code: 119, pid: 1, process: "nvc:[driver]", text: "Timeout after 6s"}},
		{"double colon in the name", "NVRM: Xid (PCI:0000:00:00): 43, pid=1, name=ray::WorkerDict, Ch 00000008",
			xidLine{pci: "0000:00:00", code: 43, pid: 1, process: "ray::WorkerDict", text: "Ch 00000008"}},
		{"comma in the name", "NVRM: Xid (PCI:0000:00:00): 43, pid=1, name=a,b, Ch 00000008",
			xidLine{pci: "0000:00:00", code: 43, pid: 1, process: "a,b", text: "Ch 00000008"}},
		{"comma and blank in the name", "NVRM: Xid (PCI:0000:00:00): 43, pid=1, name=a, b c, Ch 00000008, intr 0",
			xidLine{pci: "0000:00:00", code: 43, pid: 1, process: "a, b c", text: "Ch 00000008, intr 0"}},
		{"name that looks like a line", "NVRM: Xid (PCI:0000:00:00): 43, pid=1, name=): 79, Ch 00000008",
			xidLine{pci: "0000:00:00", code: 43, pid: 1, process: "): 79", text: "Ch 00000008"}},
		{"ends after the name", "NVRM: Xid (PCI:0000:66:00): 999, pid=1234, name=test",
			xidLine{pci: "0000:66:00", code: 999, pid: 1234, process: "test"}},
		{"ends after the pid", "NVRM: Xid (PCI:0000:01:00): 38, pid=1659,", xidLine{pci: "0000:01:00", code: 38, pid: 1659}},
		{"ends after the code", "NVRM: Xid (PCI:0000:3f:00): 46", xidLine{pci: "0000:3f:00", code: 46}},
		{"ends inside the text", "NVRM: Xid (PCI:0000:01:00): 154 (", xidLine{pci: "0000:01:00", code: 154, text: "("}},
		{"caused by another", "NVRM: Xid (PCI:0000:dc:00): 45, pid=9, name=python3, Ch 00000001 caused by previous Xid 149",
			xidLine{pci: "0000:dc:00", code: 45, pid: 9, process: "python3", text: "Ch 00000001", causedBy: 149}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(tt.line, "GPU-I:") {
				tt.want.gpuInstance, tt.want.computeInstance = -1, -1
			}
			got, ok := parseXid(tt.line)
			if !ok {
				t.Fatalf("parseXid(%q) failed", tt.line)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(xidLine{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinesWithoutDeviceOrCodeAreNoXids(t *testing.T) {
	for _, line := range []string{
		"NVRM: Xid : 32, pid=2280636",
		"NVRM: Xid (PCI:0000:66:00): abc, pid=2280636",
		"NVRM: Xid error: xyz, invalid data",
		"NVRM: Xid (PCI:zz:66:00): 13, x",
		"NVRM: Xid (PCI:0000:66:00",
		"NVRM: Xid (): 13",
		"NVRM: Xid (PCI:0000:66:00): 999999999999999999999, x",
		"NVRM: Xid (PCI:0000:66:00):",
	} {
		d := NewDetector(Options{})
		if got := append(d.Detect(kernelRecord(line, 1)), d.Flush(boot.Add(1e12))...); len(got) > 0 {
			t.Errorf("%q gives %v", line, got)
		}
		if d.Misses() != 1 {
			t.Errorf("%q: %d misses counted, want 1", line, d.Misses())
		}
	}
}

func TestTextThatOnlyMentionsAnXidIsNothing(t *testing.T) {
	for _, line := range []string{
		"Xid errors on instance: node-b, Error: node-b kernel: NVRM: Xid (PCI:0000:10:1c): 63, pid=1850, x",
		"DHCPREQUEST for 10.0.0.45 (xid=0x4f82a1b9)",
		"RPC: 1 xid 0x5f NVRM: Xid",
		"nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
		"NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:26b5)\nNVRM: installed in this system is not supported by the NVIDIA 550.54 driver release.",
		"NVRM: The NVIDIA probe routine failed for 1 device(s).",
	} {
		if got := detectLines(line); len(got) > 0 {
			t.Errorf("%q gives %v", line, got)
		}
	}
}

func TestPCIAddressesOfOneDeviceAreOne(t *testing.T) {
	for in, want := range map[string]string{
		"0000:3b:00": "0000:3b:00", "00000000:3B:00.0": "0000:3b:00", "3b:00.0": "0000:3b:00",
		"00010000:3B:00.0": "00010000:3b:00", "0004:01:00.0": "0004:01:00", "": "",
	} {
		if got := CanonicalPCI(in); got != want {
			t.Errorf("CanonicalPCI(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestDetailsOfTheTexts(t *testing.T) {
	for _, tt := range []struct {
		line string
		want map[string]any
	}{
		{"NVRM: Xid (PCI:0000:c1:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 3 (0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
			map[string]any{"link": 3, "verdict": "reset"}},
		{"NVRM: Xid (PCI:0000:c1:00): 95, pid=7062, Uncontained: FBHUB (0x3). RST: No, D-RST: Yes",
			map[string]any{"unit": "FBHUB", "reset_required": false, "drain_reset": true}},
		{"NVRM: Xid (PCI:0000:c1:00): 140, An uncorrectable ECC error detected DRAM:0, LTC:2, MMU:1, PCIE:3",
			map[string]any{"dram": 0, "ltc": 2, "mmu": 1, "pcie": 3}},
		{"NVRM: Xid (PCI:0000:c1:00): 119, pid=1, name=x, Timeout after 45s of waiting for RPC response from GPU1 GSP! Expected function 103 (GSP_RM_ALLOC) (0x80 0x38).",
			map[string]any{"seconds": 45, "rpc_function": 103, "rpc_name": "GSP_RM_ALLOC"}},
		{"NVRM: Xid (PCI:0000:c1:00): 63, Dynamic Page Retirement: New page retired, reboot to activate (0x00000000001ea2bd).",
			map[string]any{"address": "0x00000000001ea2bd"}},
		{"NVRM: Xid (PCI:0000:c1:00): 109, pid=1797828, name=pt_main_thread, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005",
			map[string]any{"error": "CTX SWITCH TIMEOUT", "process": "pt_main_thread"}},
		{"NVRM: Xid (PCI:0000:c1:00): 31, pid=3, name=p, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_8 faulted @ 0x73ac_1c000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE",
			map[string]any{"engine": "GRAPHICS GPCCLIENT_T1_8", "fault": "FAULT_PDE", "access": "ACCESS_TYPE_VIRT_WRITE"}},
	} {
		got := detectLines(tt.line)
		if len(got) != 1 {
			t.Fatalf("%q gives %v", tt.line, got)
		}
		checkFields(t, asJSON(tt.want), got[0].Fields)
	}
}

// asJSON turns numbers into those that JSON gives back.
func asJSON(m map[string]any) map[string]any {
	for k, v := range m {
		if n, ok := v.(int); ok {
			m[k] = float64(n)
		}
	}
	return m
}

func TestOnlyIgnorableBitsOfXid74AreAWarning(t *testing.T) {
	line := func(registers string) string {
		return "NVRM: Xid (PCI:0000:c1:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 1(" + registers + ")"
	}
	for registers, want := range map[string]health.Severity{
		"0x40800001, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0": health.Warning,
		"0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0":        health.Warning,
		"0x40000000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0": health.Warning,
		"0x40800003, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0": health.Fatal,
		"0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x10":       health.Fatal,
		"0x0, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0":        health.Fatal,
		"0x1, 0x0, 0x0":                            health.Fatal,
		"0x1, 0x0, zz":                             health.Fatal,
	} {
		got := detectLines(line(registers))
		if len(got) != 1 || got[0].Severity != want {
			t.Errorf("registers %s give %v, want %s", registers, got, want)
		}
	}
}

func FuzzDetect(f *testing.F) {
	f.Add("NVRM: Xid (PCI:0000:01:00 GPU-I:05): 154, GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)")
	f.Add("NVRM: Xid (PCI:0000:00:08.0): 145, RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000040)")
	f.Add("nvidia-nvswitch1: SXid (PCI:0000:0a:00.0): 22013, Non-fatal, Link 57 x")
	f.Add("NVRM: The NVIDIA GPU 0000:b3:00.0\\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has")
	f.Add("a[1]: segfault at 0 ip 0 sp 0 error 4 in libnccl.so.2[7f+d]")
	catalog := health.NewCatalog()
	f.Fuzz(func(t *testing.T, message string) {
		for _, got := range detectLines(message, message) {
			if _, ok := catalog.Lookup(got.Reason); !ok {
				t.Errorf("%q gives %q, which is not in the catalogue", message, got.Reason)
			}
		}
	})
}
