package storage

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"
	"unsafe"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/proc"
)

func page(c ebsCounters) []byte {
	b := make([]byte, ebsPageSize)
	binary.LittleEndian.PutUint32(b, ebsMagic)
	for i, v := range []uint64{c.volumeIOPS, c.volumeThroughput, c.instanceIOPS, c.instanceThroughput} {
		binary.LittleEndian.PutUint64(b[56+8*i:], v)
	}
	return b
}

func TestEBSCountersAreJudgedByTheirRise(t *testing.T) {
	start := time.Unix(1e9, 0)
	at := func(minutes int, c ebsCounters) map[string]ebsSample {
		return map[string]ebsSample{"vol-a": {c, start.Add(time.Duration(minutes) * time.Minute)}}
	}
	for name, tc := range map[string]struct {
		last, now map[string]ebsSample
		want      []told
	}{
		"the first sample is a baseline, however high": {nil, at(0, ebsCounters{volumeIOPS: 180000000}), nil},
		"a fall is a new baseline":                     {at(0, ebsCounters{volumeThroughput: 90000000}), at(10, ebsCounters{volumeThroughput: 1000}), nil},
		"any fall is one for all counters":             {at(0, ebsCounters{volumeThroughput: 90000000}), at(10, ebsCounters{volumeThroughput: 1000, instanceIOPS: 70000000}), nil},
		"two of ten minutes":                           {at(0, ebsCounters{volumeIOPS: 10000000}), at(10, ebsCounters{volumeIOPS: 130000000}), []told{{"EBSVolumeIOPSExceeded", health.Warning, "vol-a"}}},
		"50 s of ten minutes":                          {at(0, ebsCounters{}), at(10, ebsCounters{volumeIOPS: 50000000}), nil},
		"50 s of an hour":                              {at(0, ebsCounters{}), at(60, ebsCounters{volumeIOPS: 60000000}), nil},
		"each counter has its reason": {at(0, ebsCounters{}), at(10, ebsCounters{51000000, 51000000, 51000000, 51000000}),
			[]told{{"EBSVolumeIOPSExceeded", health.Warning, "vol-a"}, {"EBSVolumeThroughputExceeded", health.Warning, "vol-a"},
				{"EBSInstanceIOPSExceeded", health.Warning, "vol-a"}, {"EBSInstanceThroughputExceeded", health.Warning, "vol-a"}}},
	} {
		t.Run(name, func(t *testing.T) { wantFindings(t, checkEBS(options(nil), tc.last, tc.now), tc.want...) })
	}
	fs := checkEBS(options(nil), at(0, ebsCounters{volumeIOPS: 10000000}), at(10, ebsCounters{volumeIOPS: 130000000}))
	if f := fs[0].Fields; f["volume"] != "vol-a" || f["delta_us"] != int64(120000000) || f["window_s"] != int64(600) {
		t.Errorf("%v", f)
	}
}

func TestEBSReadsVolumesOnly(t *testing.T) {
	h := checktest.Tree(t, map[string]string{
		"sys/class/nvme/nvme0/model":  "Amazon Elastic Block Store              \n",
		"sys/class/nvme/nvme0/serial": "vol0123456789abcdef0\n",
		"sys/class/nvme/nvme1/model":  "Amazon EC2 NVMe Instance Storage        \n",
		"sys/class/nvme/nvme1/serial": "AWS1\n",
	})
	c := newEBS(options(h))
	var counters ebsCounters
	c.read = func(_ *host.Host, device string) ([]byte, error) {
		if device != "/dev/nvme0" {
			t.Errorf("asked %s", device)
		}
		return page(counters), nil
	}
	wantFindings(t, checktest.Run(t, c, h))
	counters.instanceThroughput = 1e12
	wantFindings(t, checktest.Run(t, c, h), told{"EBSInstanceThroughputExceeded", health.Warning, "vol-0123456789abcdef0"})
	c.read = func(*host.Host, string) ([]byte, error) { return nil, errNoPage }
	if _, err := c.Run(t.Context(), h); !errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want ErrNoData where no volume has the page", err)
	}
	c.read = func(*host.Host, string) ([]byte, error) { return make([]byte, ebsPageSize), nil }
	if _, err := c.Run(t.Context(), h); err == nil {
		t.Error("a page without its magic number was read")
	}
	if _, err := parseLogPage(nil); err == nil {
		t.Error("an empty page was read")
	}
	if n := unsafe.Sizeof(nvmeCommand{}); n != 72 {
		t.Errorf("the command has %d bytes, want 72", n)
	}
}

func TestIODelays(t *testing.T) {
	o := options(nil)
	ps := func(ticks uint64) []proc.Stat {
		return []proc.Stat{{PID: 7, Start: 1, Comm: "tmux: server (1)", BlockWait: ticks}}
	}
	base, fs := checkIODelays(o, nil, ps(5000))
	wantFindings(t, fs)
	_, fs = checkIODelays(o, base, ps(6000))
	wantFindings(t, fs)
	_, fs = checkIODelays(o, base, ps(6001))
	wantFindings(t, fs, told{"IODelays", health.Warning, "tmux: server (1)"})
	_, fs = checkIODelays(o, base, ps(1))
	wantFindings(t, fs)
	other := ps(9000)
	other[0].Start = 2
	_, fs = checkIODelays(o, base, other)
	wantFindings(t, fs)
}

func TestIODelaysNeedTheKernelsCount(t *testing.T) {
	h := checktest.Tree(t, map[string]string{"proc/sys/kernel/task_delayacct": "0\n"})
	if _, err := newIODelays(options(h)).Run(t.Context(), h); !errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want ErrNoData: zero is no clean sample", err)
	}
	// The name holds what separates fields elsewhere.
	h = checktest.Tree(t, map[string]string{
		"proc/sys/kernel/task_delayacct": "1\n",
		"proc/4242/stat":                 "4242 (tmux: server (1)) S 1 4242 4242 0 -1 4194624 0 0 0 0 1 2 0 0 20 0 1 0 100 1000 10 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 7 0 0\n",
	})
	c := newIODelays(options(h))
	wantFindings(t, checktest.Run(t, c, h))
	if got := c.last[process{4242, 100}]; got != 7 {
		t.Errorf("%d ticks, want 7", got)
	}
}
