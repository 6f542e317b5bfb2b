package nvidia

import (
	"fmt"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/host"
)

func TestFallenOffTheBusInItsShapes(t *testing.T) {
	for name, messages := range map[string][]string{
		"one record":         {"NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b5) installed in this system has\nNVRM: fallen off the bus and is not responding to commands."},
		"escapes left":       {`NVRM: The NVIDIA GPU 0000:b3:00.0\x0aNVRM: (PCI ID: 10de:26b5) installed in this system has\x0aNVRM: fallen off the bus and is not responding to commands.`},
		"indented":           {"NVRM: The NVIDIA GPU 0000:b3:00.0\n               NVRM: (PCI ID: 10de:26b5) installed in this system has\n               NVRM: fallen off the bus and is not responding to commands."},
		"three records":      {"NVRM: The NVIDIA GPU 0000:b3:00.0", "               NVRM: (PCI ID: 10de:26b5) installed in this system has", "NVRM: fallen off the bus and is not responding to commands."},
		"three, interrupted": {"NVRM: The NVIDIA GPU 0000:b3:00.0", "eth0: link up", "NVRM: (PCI ID: 10de:26b5) installed in this system has", "NVRM: fallen off the bus and is not responding to commands."},
		"no prefix":          {"NVRM: The NVIDIA GPU 0000:b3:00.0", "(PCI ID: 10de:26b5) installed in this system has", "fallen off the bus and is not responding to commands."},
	} {
		t.Run(name, func(t *testing.T) {
			got := detectLines(messages...)
			wantTold(t, got, "0000:b3:00 NvidiaXID79Error Fatal")
			checkFields(t, map[string]any{"pci": "0000:b3:00", "pci_id": "10de:26b5", "implied_xid": 79.0}, got[0].Fields)
		})
	}
}

func TestOtherMessagesOfTheProbeAreNothing(t *testing.T) {
	for _, messages := range [][]string{
		{"NVRM: The NVIDIA GPU 0000:b3:00.0", "NVRM: (PCI ID: 10de:26b5) installed in this system is not supported by the", "NVRM: NVIDIA 550.54.14 driver release."},
		{"NVRM: The NVIDIA GPU 0000:b3:00.0", "NVRM: (PCI ID: 10de:26b5) installed in this system has", "NVRM: something else.", "fallen off the bus and is not responding to commands."},
		{"fallen off the bus and is not responding to commands."},
		{"usb 1-1: device has fallen off the bus"},
	} {
		if got := detectLines(messages...); len(got) > 0 {
			t.Errorf("%q gives %v", messages, told(got))
		}
	}
}

func TestALostGPUThatTheDriverTellsInWordsOnly(t *testing.T) {
	for _, line := range []string{
		"NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.",
		"NVRM: GPU at PCI:0000:01:00: GPU has fallen off the bus.",
		"NVRM: GPU at 0000:01:00.0 has fallen off the bus.",
	} {
		wantTold(t, detectLines(line), "0000:01:00 NvidiaXID79Error Fatal")
		wantTold(t, detectLines("NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", line), "0000:01:00 NvidiaXID79Error Fatal")
	}
}

func TestBannersNameTheGPU(t *testing.T) {
	const uuid = "GPU-12345678-9abc-def0-1234-56789abcdef0"
	got := detectLines(
		"NVRM: GPU at PCI:0000:00:07: "+uuid, "NVRM: GPU Board Serial Number: 1653923026061",
		"NVRM: GPU at PCI:0000:00:08: GPU-00000000-0000-0000-0000-000000000008",
		"NVRM: Xid (PCI:0000:00:07.0): 79, GPU has fallen off the bus.",
		"NVRM: Xid (PCI:0000:00:09): 79, GPU has fallen off the bus.")
	wantTold(t, got, uuid+" (0000:00:07) NvidiaXID79Error Fatal", "0000:00:09 NvidiaXID79Error Fatal")
	checkFields(t, map[string]any{"gpu_uuid": uuid, "serial": "1653923026061"}, got[0].Fields)
}

func TestNVMLNamesTheGPU(t *testing.T) {
	known := &Identities{}
	d := NewDetector(Options{Identities: known})
	known.Set("00000000:3B:00.0", Identity{UUID: "GPU-1"})
	d.Detect(kernelRecord("NVRM: Xid (PCI:0000:3b:00): 46", 1))
	wantTold(t, d.Flush(boot.Add(1e12)), "GPU-1 (0000:3b:00) NvidiaXID46Error Fatal")
}

func TestSXids(t *testing.T) {
	line := func(n, code int, text string) string {
		return fmt.Sprintf("nvidia-nvswitch%d: SXid (PCI:0000:0a:00.0): %d, %s", n, code, text)
	}
	for _, tt := range []struct {
		lines []string
		want  []string
	}{
		{[]string{line(1, 22013, "Non-fatal, Link 57 Minion Link DLREQ interrupt")}, nil},
		{[]string{line(0, 11012, "Non-fatal, Link 3 x")}, nil},
		{[]string{line(0, 12028, "Non-fatal, Link 32 egress non-posted PRIV error (First)"), line(0, 12028, "Severity 0 Engine instance 32"), line(0, 12028, "Data {0x00140004, 0x00100000}")},
			[]string{"nvswitch0 (0000:0a:00) NvidiaSXID12028Error Fatal"}},
		{[]string{line(2, 20009, "Non-fatal, Link 44 RX Short Error Rate")}, []string{"nvswitch2 (0000:0a:00) NvidiaSXID20009Warning Warning"}},
		{[]string{line(2, 20009, "Non-fatal, Link 44 x"), line(2, 20034, "Fatal, Link 30 LTSSM Fault Up")}, []string{"nvswitch2 (0000:0a:00) NvidiaSXID20034Error Fatal"}},
		{[]string{line(3, 99999, "Fatal, Link 1 unheard of")}, []string{"nvswitch3 (0000:0a:00) NvidiaSXID99999Warning Warning"}},
		{[]string{"nvidia-nvswitch0: SXid (PCI:0000:0a:00.0): abc", "nvidia-nvswitch0: open (major=510)"}, nil},
	} {
		wantTold(t, detectLines(tt.lines...), tt.want...)
	}
	got := detectLines(line(2, 20034, "Fatal, Link 30 LTSSM Fault Up"), line(2, 20034, "Fatal, Link 31 LTSSM Fault Up"))
	checkFields(t, map[string]any{"sxid": 20034.0, "nvswitch": 2.0, "pci": "0000:0a:00.0", "link": 30.0, "links": []any{30.0, 31.0}}, got[0].Fields)
}

func TestSXidSeveritiesAreTheTables(t *testing.T) {
	catalog := health.NewCatalog()
	for code, info := range NewDetector(Options{}).tables.sxids {
		got := detectLines(fmt.Sprintf("nvidia-nvswitch0: SXid (PCI:0000:0a:00.0): %d, Non-fatal, Link 1 x", code))
		if info.severity == health.Info {
			if len(got) > 0 {
				t.Errorf("SXid %d gives %v", code, told(got))
			}
			continue
		}
		if len(got) != 1 || got[0].Severity != info.severity {
			t.Fatalf("SXid %d gives %v, want %s", code, told(got), info.severity)
		}
		if r, ok := catalog.Lookup(got[0].Reason); !ok || r.Severity != got[0].Severity {
			t.Errorf("%s is not so in the catalogue", got[0].Reason)
		}
	}
}

func TestCrashesInNCCL(t *testing.T) {
	for _, line := range []string{
		"pt_main_thread[2536443]: segfault at 7f797fe00000 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 4 in libnccl.so.2[7f7c7ac00000+d3d3000]",
		"pt_main_thread[2536443]: segfault at 0 ip 00007f7c7ac69996 sp 00007f7c12fd7c30 error 6 in libnccl.so.2[69996,7f7c7ac00000+d3d3000] likely on CPU 34 (core 10, socket 1)",
		"traps: pt_main_thread[2536443] general protection fault ip:7f7c7ac69996 sp:7f7c12fd7c30 error:0 in libnccl.so.2[7f7c7ac00000+d3d3000]",
	} {
		got := detectLines(line)
		wantTold(t, got, "pt_main_thread NvidiaNCCLError Warning")
		checkFields(t, map[string]any{"process": "pt_main_thread", "pid": 2536443.0, "library": "libnccl.so.2"}, got[0].Fields)
	}
	wantTold(t, detectLines("a[1]: b: c[77]: segfault at 0 ip 0 sp 0 error 4 in libnccl.so.2.21.5[7f+d]"), "a[1]: b: c NvidiaNCCLError Warning")
	for _, line := range []string{
		"python[1]: segfault at 0 ip 0 sp 0 error 4 in libc.so.6[7f+d]",
		"libnccl.so.2[1]: segfault at 0 ip 0 sp 0 error 4 in libc.so.6[7f+d]",
	} {
		if got := detectLines(line); len(got) > 0 {
			t.Errorf("%q gives %v", line, told(got))
		}
	}
	if got := detectAll(Options{}, host.Record{Source: host.SourceKmsg, Facility: 1, Message: "a[1]: segfault at 0 ip 0 sp 0 error 4 in libnccl.so.2[7f+d]"}); len(got) != 1 || got[0].Origin != health.OriginUserspace {
		t.Errorf("from user space: %+v", got)
	}
}
