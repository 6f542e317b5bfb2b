package nvidia

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// r575 is the first driver branch with the second layout of intrinfo.
const r575 = 575

// nvlink5Line is the text of an Xid 144 to 150:
// "RLW_REMAP Nonfatal XC1 i0 Link 10 (0x00000082 0x00000040 …)".
type nvlink5Line struct {
	unit  string
	label string
	link  int64 // -1 when not given
	// intrinfo and status are the first two words in the parentheses.
	intrinfo, status uint32
}

var nvlink5RE = regexp.MustCompile(`^(\w+)\s+(\S+)\s.*?(?:\bLink (-?\d{1,3})\s*)?\(\s*(0x[0-9a-fA-F]{1,8})[\s,]+(0x[0-9a-fA-F]{1,8})\b`)

func parseNVLink5(text string) (nvlink5Line, bool) {
	m := nvlink5RE.FindStringSubmatch(text)
	if m == nil {
		return nvlink5Line{}, false
	}
	l := nvlink5Line{unit: m[1], label: m[2], link: -1}
	if m[3] != "" {
		l.link = number(m[3])
	}
	intrinfo, _ := strconv.ParseUint(m[4], 0, 32)
	status, _ := strconv.ParseUint(m[5], 0, 32)
	l.intrinfo, l.status = uint32(intrinfo), uint32(status)
	return l, true
}

// decodeNVLink5 finds the row for a line under one of the two layouts (0: drivers
// before R575). Without a row the hardware said nothing that asks for action.
func (t *tables) decodeNVLink5(xid int, l nvlink5Line, layout int) (nvlink5Info, bool) {
	var best nvlink5Info
	found := false
	named := t.nvlink5Unit(xid, l.unit)
	for _, row := range t.nvlink5 {
		if row.xid != xid || !row.intrinfo[layout].matches(l.intrinfo) || named && !slices.Contains(row.units, l.unit) {
			continue
		}
		if row.status == l.status {
			return row, true
		}
		// Several errors at once set several bits: the worst of them counts. The
		// status words of 149 and 150 are numbers, not sets of bits.
		if xid < 149 && l.status&row.status != 0 && (!found || row.fatal() && !best.fatal()) {
			best, found = row, true
		}
	}
	return best, found
}

// nvlink5Unit says whether the table knows the unit's name. Drivers rename units;
// the bits of intrinfo name them too.
func (t *tables) nvlink5Unit(xid int, unit string) bool {
	return slices.ContainsFunc(t.nvlink5, func(row nvlink5Info) bool {
		return row.xid == xid && slices.Contains(row.units, unit)
	})
}

// nvlink5Verdict adds the decode of a line to f and says whether it is fatal. driver
// is the driver's branch, 0 when unknown: then, if the two layouts disagree, the
// milder verdict counts.
func (t *tables) nvlink5Verdict(f map[string]any, xid int, text string, driver int) bool {
	l, ok := parseNVLink5(text)
	if !ok {
		return false
	}
	f["unit"], f["nvlink_label"] = l.unit, l.label
	f["intrinfo"], f["error_status"] = hex32(l.intrinfo), hex32(l.status)
	if l.link >= 0 {
		f["link"] = l.link
	}
	old, oldFound := t.decodeNVLink5(xid, l, 0)
	now, nowFound := t.decodeNVLink5(xid, l, 1)
	oldFatal, nowFatal := oldFound && old.fatal(), nowFound && now.fatal()
	if driver == 0 {
		driver = driverByName(l.unit, old, oldFound, now, nowFound)
	}
	if oldFatal != nowFatal {
		f["driver_dependent"] = true
	}
	row, found := now, nowFound
	switch {
	case driver >= r575:
	case driver > 0, nowFatal && !oldFatal, oldFatal == nowFatal && !nowFound:
		row, found = old, oldFound
	}
	if !found {
		return false
	}
	f["nvlink_severity"], f["action"] = row.severity, row.action
	return row.fatal()
}

// driverByName tells the driver's layout by the unit's name, 0 when it cannot: some
// units have one name before R575 and another since, and the bits must agree.
func driverByName(unit string, old nvlink5Info, oldFound bool, now nvlink5Info, nowFound bool) int {
	switch {
	case oldFound && !nowFound && len(old.units) == 2 && unit == old.units[0]:
		return r575 - 1
	case nowFound && !oldFound && len(now.units) == 2 && unit == now.units[1]:
		return r575
	}
	return 0
}

func hex32(v uint32) string { return fmt.Sprintf("0x%08x", v) }
