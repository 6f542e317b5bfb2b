package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

func TestAdoptionKeepsWhatTheNodeSays(t *testing.T) {
	long := func(b *bench) time.Time { return b.at.Add(-30 * time.Minute) }
	node := func(b *bench, reason string) []NodeCondition {
		return []NodeCondition{{Type: storage, Reason: reason, Message: "old words", Since: long(b)}}
	}
	t.Run("a fault that only the Node knows", func(t *testing.T) {
		b := newBench(t)
		b.Evaluated(storage)
		b.Adopt(node(b, "FilesystemReadOnly"))
		c := b.is(storage, false, "FilesystemReadOnly")
		if !c.Since.Equal(long(b)) || c.Message != "old words" {
			t.Errorf("%+v", c)
		}
		if len(b.Pending()) != 0 {
			t.Error("it was told again")
		}
		for range 3 {
			b.sample("mounts", "FilesystemReadOnly")
		}
		b.is(storage, true, "StorageIsReady")
	})
	t.Run("found again with its subject it is one fault", func(t *testing.T) {
		b := newBench(t)
		b.Adopt(node(b, "FilesystemReadOnly"))
		b.sample("mounts", "FilesystemReadOnly", "/var")
		if fs := b.View().Findings; len(fs) != 1 || fs[0].Subject != "/var" || !fs[0].Since.Equal(long(b)) {
			t.Errorf("%+v", fs)
		}
	})
	t.Run("found before the Node was read", func(t *testing.T) {
		b := newBench(t)
		b.sees("FilesystemReadOnly", "/var")
		b.Adopt(node(b, "FilesystemReadOnly"))
		if c := b.is(storage, false, "FilesystemReadOnly"); !c.Since.Equal(long(b)) {
			t.Errorf("the repair clock was reset: %+v", c)
		}
	})
	t.Run("a boot since then ended it", func(t *testing.T) {
		b := newBench(t)
		b.up = b.at.Add(-time.Minute)
		b.restart()
		b.Adopt(node(b, "FilesystemShutdown"))
		b.is(storage, true, "StorageIsReady")
		if len(b.notices(Recovered)) != 1 {
			t.Error("the recovery is not told")
		}
	})
	t.Run("an end that was not written any more", func(t *testing.T) {
		b := newBench(t)
		b.sees("FilesystemShutdown", "sda1")
		since := b.is(storage, false, "FilesystemShutdown").Since
		b.pass(time.Hour)
		b.AllClear("FilesystemShutdown", "", "ann")
		b.restart()
		b.Adopt([]NodeCondition{{Type: storage, Reason: "FilesystemShutdown", Since: since}})
		b.is(storage, true, "StorageIsReady")
	})
	t.Run("a healthy Node keeps its transition", func(t *testing.T) {
		b := newBench(t)
		b.Adopt([]NodeCondition{{Type: storage, Healthy: true, Reason: "StorageIsReady", Since: long(b)}})
		if c := b.is(storage, true, "StorageIsReady"); !c.Since.Equal(long(b)) {
			t.Errorf("%+v", c)
		}
	})
	t.Run("a Node that was made anew does not reset what the ledger knows", func(t *testing.T) {
		b := newBench(t)
		b.sees("FilesystemShutdown", "sda1")
		since := b.is(storage, false, "FilesystemShutdown").Since
		b.pass(time.Hour)
		b.restart()
		b.Adopt(nil)
		if c := b.is(storage, false, "FilesystemShutdown"); !c.Since.Equal(since) {
			t.Errorf("%+v", c)
		}
	})
	t.Run("an unknown reason stays until someone clears it", func(t *testing.T) {
		b := newBench(t)
		b.Adopt(node(b, "SomebodyElsesReason"))
		b.is(storage, false, "SomebodyElsesReason")
		b.AllClear("SomebodyElsesReason", "", "ann")
		b.is(storage, true, "StorageIsReady")
	})
}

// Whatever happens in whatever order: a transition moves only when its status moves;
// a restart changes neither; and a fault never becomes healthy because of a restart.
func TestTransitionsAreHonestUnderRandomHistories(t *testing.T) {
	reasons := []string{"FilesystemReadOnly", "FilesystemShutdown", "FilesystemError", "DiskSpaceLow"}
	catalog := health.NewCatalog()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := newBench(t)
		b.cat = catalog
		var last *Condition
		var trace []string
		for range 60 {
			b.pass(time.Duration(r.IntN(90)) * time.Second)
			reason, subject := reasons[r.IntN(len(reasons))], fmt.Sprint("sd", r.IntN(3))
			op := r.IntN(10)
			if r.IntN(50) == 0 {
				// The clock is stepped back, and with it what "now less the uptime" gives.
				b.pass(-time.Hour)
				b.up = b.up.Add(-time.Hour)
			}
			restarted := false
			switch op {
			case 0, 1:
				b.sees(reason, subject)
			case 2:
				b.sample("mounts", reason, subject)
			case 3, 4:
				b.sample("mounts", reason)
			case 5:
				b.restart()
				restarted = true
			case 6: // a restart with the disk lost: the Node is all there is
				node := b.condition(storage)
				b.disk.b = nil
				b.restart()
				if node != nil {
					b.Adopt([]NodeCondition{{Type: storage, Healthy: node.Healthy, Reason: node.Reason, Message: node.Message, Since: node.Since}})
				}
				b.Evaluated(storage)
				restarted = true
			case 7:
				b.Evaluated(storage)
			case 8:
				b.SetBlind(storage, [][]string{nil, {"kmsg"}}[r.IntN(2)])
			case 9:
				b.Tick()
			}
			trace = append(trace, fmt.Sprint(op, reason, subject))
			c := b.condition(storage)
			if last != nil && c == nil {
				t.Fatalf("seed %d: the condition is gone after %v", seed, trace)
			}
			if last != nil && c.Healthy == last.Healthy && !c.Since.Equal(last.Since) {
				t.Fatalf("seed %d: the transition moved without the status after %v", seed, trace)
			}
			if restarted && last != nil && !last.Healthy && c.Healthy {
				t.Fatalf("seed %d: a restart healed %s after %v", seed, last.Reason, trace)
			}
			if c != nil && !c.Healthy && c.Reason == "" {
				t.Fatalf("seed %d: False without a reason after %v", seed, trace)
			}
			last = c
		}
	}
}
