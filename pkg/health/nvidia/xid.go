package nvidia

import (
	"regexp"
	"strconv"
	"strings"
)

// xidLine is a line "NVRM: Xid (PCI:…): CODE, …" taken apart.
type xidLine struct {
	// pci is the address as printed, in lower case.
	pci string
	// gpuInstance and computeInstance are MIG instance ids; -1 when not given.
	gpuInstance, computeInstance int64
	code                         int
	// pid is 0 when the driver did not know it.
	pid     int64
	process string
	// text is what follows the code, the pid and the name.
	text string
	// causedBy is N of "caused by previous Xid N"; 0 when not given.
	causedBy int
}

const xidPrefix = "NVRM: Xid "

var (
	causedByRE = regexp.MustCompile(`\s*\bcaused by previous Xid (\d{1,6})\b\.?\s*$`)
	pidRE      = regexp.MustCompile(`^pid=(?:'?<unknown>'?|(\d{1,10}))(?:,\s*|$)`)
	nameREs    = regexp.MustCompile(`^name='?<unknown>'?(?:,\s*|$)`)
	// afterNameRE is how the text behind the process name begins in the driver's
	// messages; it tells a comma of the text from one of the name.
	afterNameRE = regexp.MustCompile(`^(?:Ch |channel |Channel |GPU |Timeout |Contained|Uncontained|NVLink|Row |Graphics |MMU |An |[0-9a-f]{8} )`)
)

// parseXid takes a line apart. It fails when the line has no device or no code, as
// no line of the driver does; everything after the code may be missing.
func parseXid(line string) (xidLine, bool) {
	x := xidLine{gpuInstance: -1, computeInstance: -1}
	rest, ok := strings.CutPrefix(line, xidPrefix)
	if !ok || !strings.HasPrefix(rest, "(") {
		return x, false
	}
	inside, rest, ok := strings.Cut(rest[1:], ")")
	if !ok || !x.device(inside) {
		return x, false
	}
	rest = strings.TrimLeft(rest, ": ")
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	// No code has more than five digits: more is not a code but garbage.
	if digits == 0 || digits > 5 {
		return x, false
	}
	x.code, _ = strconv.Atoi(rest[:digits])
	x.text = strings.TrimLeft(rest[digits:], ", ")
	if m := causedByRE.FindStringSubmatchIndex(x.text); m != nil {
		x.causedBy, _ = strconv.Atoi(x.text[m[2]:m[3]])
		x.text = x.text[:m[0]]
	}
	x.takeProcess()
	return x, true
}

// device reads what stands in the parentheses: the PCI address and, on a GPU that
// is partitioned (MIG), the instances.
func (x *xidLine) device(inside string) bool {
	for i, word := range strings.Fields(inside) {
		switch key, value, found := strings.Cut(word, ":"); {
		case i == 0:
			x.pci = strings.ToLower(strings.TrimPrefix(word, "PCI:"))
		case found && key == "GPU-I":
			x.gpuInstance = instanceID(value)
		case found && key == "GPU-CI":
			x.computeInstance = instanceID(value)
		}
	}
	return pciRE.MatchString(x.pci)
}

func instanceID(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return -1
	}
	return n
}

// takeProcess takes "pid=…, name=…, " off the text.
func (x *xidLine) takeProcess() {
	if m := pidRE.FindStringSubmatchIndex(x.text); m != nil {
		if m[2] >= 0 {
			x.pid, _ = strconv.ParseInt(x.text[m[2]:m[3]], 10, 64)
		}
		x.text = x.text[m[1]:]
	}
	if m := nameREs.FindStringIndex(x.text); m != nil {
		x.text = x.text[m[1]:]
		return
	}
	if rest, ok := strings.CutPrefix(x.text, "name="); ok {
		x.process, x.text = splitName(rest)
	}
}

// splitName finds the end of a process name, which may itself hold any character:
// the first ", " that is followed by the driver's words, or else the first at all.
func splitName(s string) (name, rest string) {
	first := -1
	for from := 0; ; {
		i := strings.Index(s[from:], ", ")
		if i < 0 {
			break
		}
		i += from
		if first < 0 {
			first = i
		}
		if afterNameRE.MatchString(s[i+2:]) {
			return s[:i], s[i+2:]
		}
		from = i + 2
	}
	if first >= 0 {
		return s[:first], s[first+2:]
	}
	return strings.TrimSuffix(strings.TrimSpace(s), ","), ""
}

// fields are the values of the line that every code has.
func (x *xidLine) fields() map[string]any {
	f := map[string]any{"xid": int64(x.code), "pci": x.pci}
	if x.pid != 0 {
		f["pid"] = x.pid
	}
	if x.process != "" {
		f["process"] = x.process
	}
	if x.gpuInstance >= 0 {
		f["mig_gpu_instance"] = x.gpuInstance
	}
	if x.computeInstance >= 0 {
		f["mig_compute_instance"] = x.computeInstance
	}
	return f
}
