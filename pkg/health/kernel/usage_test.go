package kernel

import (
	"errors"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
)

func pidTree(t *testing.T, threads, pidMax, threadsMax string) map[string]string {
	t.Helper()
	return map[string]string{
		"proc/loadavg":                "0.20 0.18 0.12 1/" + threads + " 11206\n",
		"proc/sys/kernel/pid_max":     pidMax + "\n",
		"proc/sys/kernel/threads-max": threadsMax + "\n",
		"proc/stat":                   "cpu 1 2\nprocesses 1000\nprocs_running 1\n",
	}
}

func TestPIDUsageCountsThreadsAgainstTheLowerLimit(t *testing.T) {
	for name, tc := range map[string]struct {
		threads, pidMax, threadsMax string
		want                        []told
	}{
		"below":              {"69", "100", "1000", nil},
		"at pid_max":         {"70", "100", "1000", []told{{"ApproachingKernelPidMax", health.Warning, ""}}},
		"at threads-max":     {"70", "4194304", "100", []told{{"ApproachingKernelPidMax", health.Warning, ""}}},
		"a node with plenty": {"20000", "4194304", "192729", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := checktest.Tree(t, pidTree(t, tc.threads, tc.pidMax, tc.threadsMax))
			wantFindings(t, checktest.Run(t, newPIDUsage(options(h)), h), tc.want...)
		})
	}
}

func TestPIDUsageIsBlindWithoutItsFiles(t *testing.T) {
	h := checktest.Tree(t, map[string]string{"proc/loadavg": "0.20 0.18 0.12 1/5 11206\n"})
	if _, err := newPIDUsage(options(h)).Run(t.Context(), h); err == nil {
		t.Error("no error")
	}
}

func TestForkRecoveryNeedsForksAndFreeIDs(t *testing.T) {
	o, few, many := options(nil), pids{threads: 10, pidMax: 100, threadsMax: 100}, pids{threads: 90, pidMax: 100, threadsMax: 100}
	n := func(v int64) *int64 { return &v }
	for name, tc := range map[string]struct {
		p    pids
		last *int64
		now  int64
		want bool
	}{
		"first sample":        {few, nil, 10, false},
		"forked since":        {few, n(10), 11, true},
		"nothing forked":      {few, n(10), 10, false},
		"ids are short still": {many, n(10), 11, false},
		"counter fell":        {few, n(10), 3, false},
	} {
		if got := recovered(o, tc.p, tc.last, tc.now); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	h := checktest.Tree(t, pidTree(t, "10", "100", "100"))
	if fs, err := newForkRecovery(options(h)).Run(t.Context(), h); !errors.Is(err, check.ErrNoData) || fs != nil {
		t.Errorf("first run: %v, %v, want ErrNoData: it is no clean sample", fs, err)
	}
}

func TestOpenFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		fileNr string
		want   []told
	}{
		"few":         {"1536\t0\t2466160\n", nil},
		"many":        {"70\t0\t100\n", []told{{"ApproachingMaxOpenFiles", health.Warning, ""}}},
		"no limit":    {"1536\t0\t9223372036854775807\n", nil},
		"above int64": {"1536 0 18446744073709551615\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := checktest.Tree(t, map[string]string{"proc/sys/fs/file-nr": tc.fileNr})
			wantFindings(t, checktest.Run(t, newOpenFiles(options(h)), h), tc.want...)
		})
	}
	for _, bad := range []string{"", "1 2", "x 0 1", "1 0 x"} {
		if _, _, err := parseFileNr(bad); err == nil {
			t.Errorf("parseFileNr(%q) found no fault", bad)
		}
	}
}

func TestClock(t *testing.T) {
	h := checktest.Tree(t, map[string]string{"proc/uptime": "3600.12 100.00\n"})
	c := newClock(options(h))
	c.status = func() (int32, error) { return 0x40, nil }
	wantFindings(t, checktest.Run(t, c, h), told{"ClockUnsynchronized", health.Warning, ""})
	c.status = func() (int32, error) { return 0x2001, nil }
	wantFindings(t, checktest.Run(t, c, h))
	young := checktest.Tree(t, map[string]string{"proc/uptime": "30.00 10.00\n"})
	if _, err := c.Run(t.Context(), young); !errors.Is(err, check.ErrNoData) {
		t.Errorf("half a minute after boot: %v, want ErrNoData", err)
	}
	if _, err := readClock(); err != nil {
		t.Errorf("adjtimex: %v", err)
	}
}

func TestZram(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  []told
	}{
		"one holds much, one little, one is not set up": {map[string]string{
			"sys/block/zram0/mm_stat": "  110 0 0 0 0 0 0 0 0\n", "sys/block/zram0/disksize": "1000\n",
			"sys/block/zram1/mm_stat": "100 0 0 0\n", "sys/block/zram1/disksize": "1000\n",
			"sys/block/zram2/mm_stat": "0 0\n", "sys/block/zram2/disksize": "0\n",
		}, []told{{"ZramHighUsage", health.Warning, "zram0"}}},
	} {
		t.Run(name, func(t *testing.T) {
			h := checktest.Tree(t, tc.files)
			wantFindings(t, checktest.Run(t, newZram(options(h)), h), tc.want...)
		})
	}
	h := checktest.Tree(t, map[string]string{"sys/block/sda/size": "1\n"})
	if _, err := newZram(options(h)).Run(t.Context(), h); !errors.Is(err, check.ErrNoData) {
		t.Errorf("without zram: %v, want ErrNoData", err)
	}
}
