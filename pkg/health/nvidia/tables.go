package nvidia

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/health"
)

var (
	//go:embed xid.tsv
	xidTSV string
	//go:embed xid-nvlink5.tsv
	nvlink5TSV string
	//go:embed sxid.tsv
	sxidTSV string
)

// xidInfo is a row of NVIDIA's Xid catalogue.
type xidInfo struct {
	code     int
	mnemonic string
	name     string
	// action is NVIDIA's immediate action, such as "RESET_GPU".
	action string
	// severity is the contract's, not NVIDIA's.
	severity health.Severity
}

// sxidInfo is a row of the table of NVSwitch errors.
type sxidInfo struct {
	code     int
	name     string
	severity health.Severity
}

// nvlink5Info is a row of the decode of Xid 144 to 150.
type nvlink5Info struct {
	xid int
	// units are the names that the log may give the unit: one, or that before R575 and
	// that since.
	units []string
	// intrinfo holds the bit patterns for drivers before R575 and from R575 on.
	intrinfo [2]bitPattern
	status   uint32
	action   string
	severity string
}

// fatal says that the row asks for a reset of the GPU or more for a fatal error.
func (n nvlink5Info) fatal() bool {
	return !strings.EqualFold(n.severity, "Non-fatal") && strings.Contains(n.severity, "Fatal") &&
		actionWeight(n.action) >= actionWeight("RESET_GPU")
}

// bitPattern matches a 32-bit word: the bits under mask must be those of value.
type bitPattern struct{ mask, value uint32 }

func (p bitPattern) matches(word uint32) bool { return word&p.mask == p.value }

// parseBitPattern reads 32 characters, most significant bit first: '0', '1', or '-'
// for a bit that does not matter.
func parseBitPattern(s string) (bitPattern, error) {
	var p bitPattern
	if len(s) != 32 {
		return p, fmt.Errorf("%q has %d characters, not 32", s, len(s))
	}
	for i := range len(s) {
		bit := uint32(1) << (31 - i)
		switch s[i] {
		case '-':
		case '0':
			p.mask |= bit
		case '1':
			p.mask |= bit
			p.value |= bit
		default:
			return p, fmt.Errorf("%q has a %q", s, s[i])
		}
	}
	return p, nil
}

// tables holds the three tables, parsed.
type tables struct {
	xids    map[int]xidInfo
	sxids   map[int]sxidInfo
	nvlink5 []nvlink5Info
}

// loadTables parses the embedded tables. An error is a defect of the build.
func loadTables() (tables, error) {
	t := tables{xids: map[int]xidInfo{}, sxids: map[int]sxidInfo{}}
	err := eachRow(xidTSV, 6, func(f []string) error {
		code, err := strconv.Atoi(f[0])
		if err != nil {
			return err
		}
		severity, err := parseSeverity(f[5])
		t.xids[code] = xidInfo{code: code, mnemonic: f[1], name: f[2], action: f[3], severity: severity}
		return err
	})
	if err != nil {
		return t, fmt.Errorf("xid.tsv: %w", err)
	}
	err = eachRow(sxidTSV, 4, func(f []string) error {
		code, err := strconv.Atoi(f[0])
		if err != nil {
			return err
		}
		severity, err := parseSeverity(f[3])
		t.sxids[code] = sxidInfo{code: code, name: f[1], severity: severity}
		return err
	})
	if err != nil {
		return t, fmt.Errorf("sxid.tsv: %w", err)
	}
	err = eachRow(nvlink5TSV, 9, func(f []string) error {
		row, err := parseNVLink5Row(f)
		t.nvlink5 = append(t.nvlink5, row)
		return err
	})
	if err != nil {
		return t, fmt.Errorf("xid-nvlink5.tsv: %w", err)
	}
	return t, nil
}

func parseNVLink5Row(f []string) (nvlink5Info, error) {
	n := nvlink5Info{units: strings.Split(f[1], "/"), action: f[5], severity: f[7]}
	var err error
	if n.xid, err = strconv.Atoi(f[0]); err != nil {
		return n, err
	}
	for i := range n.intrinfo {
		if n.intrinfo[i], err = parseBitPattern(f[2+i]); err != nil {
			return n, err
		}
	}
	status, err := strconv.ParseUint(f[4], 0, 32)
	n.status = uint32(status)
	return n, err
}

func parseSeverity(s string) (health.Severity, error) {
	v := health.Severity(s)
	if v.Rank() == 0 {
		return v, fmt.Errorf("%q is no severity", s)
	}
	return v, nil
}

// eachRow calls f with the fields of each row of a table but its heading.
func eachRow(tsv string, fields int, f func([]string) error) error {
	for i, line := range strings.Split(strings.TrimSpace(tsv), "\n") {
		if i == 0 {
			continue
		}
		row := strings.Split(line, "\t")
		if len(row) != fields {
			return fmt.Errorf("line %d has %d fields, not %d", i+1, len(row), fields)
		}
		if err := f(row); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}
