package network

import (
	"errors"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/check"
	"github.com/ekslogs/ekslogs/pkg/health/check/checktest"
)

func TestENACountersAreJudgedByTheirRise(t *testing.T) {
	start := time.Unix(1e9, 0)
	at := func(minutes int, counter string, n uint64) map[string]enaSample {
		return map[string]enaSample{"eth0": {start.Add(time.Duration(minutes) * time.Minute), map[string]uint64{counter: n}}}
	}
	for _, a := range allowances() {
		o := options(nil)
		wantFindings(t, checkENA(o, nil, at(0, a.counter, 1e9)))
		wantFindings(t, checkENA(o, at(0, a.counter, 5), at(10, a.counter, 5+a.limit)))
		wantFindings(t, checkENA(o, at(0, a.counter, 5), at(10, a.counter, 6+a.limit)), told{a.reason, health.Warning, "eth0"})
		wantFindings(t, checkENA(o, at(0, a.counter, 5), at(5, a.counter, 6+a.limit/2)), told{a.reason, health.Warning, "eth0"})
		wantFindings(t, checkENA(o, at(0, a.counter, 1e9), at(10, a.counter, 3)))
		wantFindings(t, checkENA(o, at(0, "other", 0), at(10, a.counter, 1e9)))
	}
}

func TestAPortThatWasActive(t *testing.T) {
	const state = "sys/class/infiniband/mlx5_0/ports/1/state"
	h, bad := checktest.Tree(t, map[string]string{state: "4: ACTIVE\n"}), checktest.Tree(t, map[string]string{state: "1: DOWN\n"})
	c := newInfiniBand(options(h))
	wantFindings(t, checktest.Run(t, c, bad))
	wantFindings(t, checktest.Run(t, c, h))
	wantFindings(t, checktest.Run(t, c, bad), told{"InfiniBandPortDown", health.Warning, "mlx5_0/1"})
	gone := checktest.Tree(t, map[string]string{"sys/class/net/lo/flags": "0x9"})
	wantFindings(t, checktest.Run(t, c, gone), told{"InfiniBandPortDown", health.Warning, "mlx5_0/1"})
	wantFindings(t, checktest.Run(t, c, h))
	if _, err := newInfiniBand(options(gone)).Run(t.Context(), gone); !errors.Is(err, check.ErrNoData) {
		t.Errorf("%v, want ErrNoData without adapters", err)
	}
}

func TestEFACountersAreJudgedByTheirPace(t *testing.T) {
	files := func(n string) map[string]string {
		return map[string]string{
			"sys/class/infiniband/rdmap0/device/vendor":                      "0x1d0f\n",
			"sys/class/infiniband/rdmap0/ports/1/hw_counters/retrans_pkts":   n + "\n",
			"sys/class/infiniband/mlx5_0/device/vendor":                      "0x15b3\n",
			"sys/class/infiniband/mlx5_0/ports/1/hw_counters/retrans_pkts":   n + "\n",
			"sys/class/infiniband/rdmap0/ports/1/hw_counters/tx_bytes":       "99999999\n",
			"sys/class/infiniband/rdmap0/ports/1/hw_counters/lifespan":       "12\n",
			"sys/class/infiniband/rdmap0/ports/1/hw_counters/something_else": "x\n",
		}
	}
	now := time.Unix(1e9, 0)
	h := checktest.Tree(t, files("5000000"))
	c := newEFA(options(h))
	c.now = func() time.Time { now = now.Add(time.Minute); return now }
	wantFindings(t, checktest.Run(t, c, h))
	wantFindings(t, checktest.Run(t, c, checktest.Tree(t, files("5060000"))))
	wantFindings(t, checktest.Run(t, c, checktest.Tree(t, files("5120001"))), told{"EFAErrorMetric", health.Warning, "rdmap0"})
	wantFindings(t, checktest.Run(t, c, checktest.Tree(t, files("10"))))
}
