package nvidia

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	physAddrRE    = regexp.MustCompile(`\bphysAddr (0x[0-9a-fA-F]+)`)
	rowRE         = regexp.MustCompile(`^(?:Row Remapper|Dynamic Page Retirement)[^(]*\((0x[0-9a-fA-F]+)\)`)
	containedRE   = regexp.MustCompile(`^(?:Unc|C)ontained: (.+?) ?\(0x[^)]*\)`)
	resetRE       = regexp.MustCompile(`(?:^|\s)(RST|D-RST): (Yes|No)\b`)
	countersRE    = regexp.MustCompile(`\b(DRAM|LTC|MMU|PCIE): ?(\d{1,18})\b`)
	linkRE        = regexp.MustCompile(`\b[lL]ink (\d{1,3}) ?\(([^)]*)\)?`)
	plainLinkRE   = regexp.MustCompile(`\b[lL]ink (\d{1,3})\b`)
	rpcRE         = regexp.MustCompile(`\bTimeout after (\d{1,6})s of waiting for RPC response from GPU\d+ GSP! Expected function (\d{1,6}) \(([A-Z0-9_]+)\)`)
	errorStringRE = regexp.MustCompile(`\berrorString ([^,]{1,64}),`)
	faultRE       = regexp.MustCompile(`\bMMU Fault: ENGINE (.+?) faulted @ (0x[0-9a-f_]+)\. Fault is of type (\S+) (\S+)`)
)

// addDetails adds what the text of a code says to f.
func addDetails(f map[string]any, code int, text string) {
	switch code {
	case 31:
		if m := faultRE.FindStringSubmatch(text); m != nil {
			f["engine"], f["address"], f["fault"], f["access"] = m[1], m[2], m[3], m[4]
		}
	case 48, 171, 172:
		if m := physAddrRE.FindStringSubmatch(text); m != nil {
			f["phys_addr"] = m[1]
		}
	case 63, 64:
		if m := rowRE.FindStringSubmatch(text); m != nil {
			f["address"] = m[1]
		}
	case 74:
		addNVLink(f, text)
	case 94, 95:
		if m := containedRE.FindStringSubmatch(text); m != nil {
			f["unit"] = m[1]
		}
		for _, m := range resetRE.FindAllStringSubmatch(text, -1) {
			// The driver's own verdict: RST is a reset of the GPU, D-RST a reset after
			// the other processes have ended.
			name := map[string]string{"RST": "reset_required", "D-RST": "drain_reset"}[m[1]]
			f[name] = m[2] == "Yes"
		}
	case 109:
		if m := errorStringRE.FindStringSubmatch(text); m != nil {
			f["error"] = m[1]
		}
	case 119, 120:
		if m := rpcRE.FindStringSubmatch(text); m != nil {
			f["seconds"], f["rpc_function"], f["rpc_name"] = number(m[1]), number(m[2]), m[3]
		}
	case 140:
		for _, m := range countersRE.FindAllStringSubmatch(text, -1) {
			f[strings.ToLower(m[1])] = number(m[2])
		}
	}
}

// nvlinkRegisters is how many registers Xid 74 prints.
const nvlinkRegisters = 7

// nvlinkIgnorable are the bits of the first register of Xid 74 that, alone, can be
// ignored, whatever the text says (NVIDIA's Xid 74 workflow: bits 0, 23 and 30).
const nvlinkIgnorable = 1<<0 | 1<<23 | 1<<30

// addNVLink reads "link 14(0x0, 0x0, …)" of Xid 74.
func addNVLink(f map[string]any, text string) {
	m := linkRE.FindStringSubmatch(text)
	if m == nil {
		if m = plainLinkRE.FindStringSubmatch(text); m != nil {
			f["link"] = number(m[1])
		}
		return
	}
	f["link"] = number(m[1])
	var registers []string
	var values []uint64
	for part := range strings.SplitSeq(m[2], ",") {
		part = strings.TrimSpace(part)
		v, err := strconv.ParseUint(part, 0, 64)
		if err != nil {
			return
		}
		registers, values = append(registers, part), append(values, v)
	}
	f["registers"] = registers
	if len(values) != nvlinkRegisters || values[0] == 0 || values[0]&^uint64(nvlinkIgnorable) != 0 {
		return
	}
	for _, v := range values[1:] {
		if v != 0 {
			return
		}
	}
	f["ignorable_bits_only"] = true
}

// number is for digits that a pattern has bounded to what int64 holds.
func number(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}
