package ledger

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/ekslogs/ekslogs/pkg/health"
)

const (
	kernel  = health.KernelReady
	storage = health.StorageReady
	accel   = health.AcceleratedHardwareReady
)

func TestEveryRuleOfTheCatalogueIsUnderstood(t *testing.T) {
	for _, r := range health.NewCatalog().Reasons() {
		rule := ParseRule(r.Clears, r.Severity)
		switch word := strings.FieldsFunc(r.Clears, func(c rune) bool { return c == ':' || c == ';' || c == ' ' })[0]; word {
		case "-": // reserved
		case "0x0":
			if rule.Kind != ClearDriver || !rule.Driver {
				t.Errorf("%s: %q gives %+v", r.Code, r.Clears, rule)
			}
		default:
			if string(rule.Kind) != word {
				t.Errorf("%s: %q gives %+v", r.Code, r.Clears, rule)
			}
		}
		if r.Severity == health.Fatal && rule.Kind == ClearEvent {
			t.Errorf("%s is Fatal and would end by waiting", r.Code)
		}
	}
	if r := ParseRule("reboot; or Xid 154 back to 0x0 for that GPU", health.Fatal); r.Kind != ClearReboot || !r.Driver {
		t.Errorf("Xid rule: %+v", r)
	}
	if r := ParseRule("event", health.Fatal); r.Kind != ClearReboot {
		t.Errorf("an event made Fatal: %+v", r)
	}
}

func TestAFaultEndsByItsOwnRule(t *testing.T) {
	healthyAgain := func(b *bench, cond health.ConditionType) bool { return b.condition(cond).Healthy }
	for _, c := range []struct {
		reason  string
		after   func(*bench)
		healthy bool
	}{
		{"FilesystemReadOnly", func(b *bench) { b.sample("mounts", "FilesystemReadOnly"); b.sample("mounts", "FilesystemReadOnly") }, false},
		{"FilesystemReadOnly", func(b *bench) {
			for range 3 {
				b.sample("mounts", "FilesystemReadOnly")
			}
		}, true},
		{"FilesystemReadOnly", func(b *bench) { // the fault comes back between clean samples
			b.sample("mounts", "FilesystemReadOnly")
			b.sample("mounts", "FilesystemReadOnly")
			b.sample("mounts", "FilesystemReadOnly", "sda1")
			b.sample("mounts", "FilesystemReadOnly")
			b.sample("mounts", "FilesystemReadOnly")
		}, false},
		{"FilesystemReadOnly", func(b *bench) { // of another reason
			for range 5 {
				b.sample("disk", "DiskSpaceLow")
			}
		}, false},
		{"FilesystemReadOnly", func(b *bench) { // a clean sample says nothing about another check's find
			b.sample("mounts", "FilesystemReadOnly", "sda1")
			for range 5 {
				b.sample("other", "FilesystemReadOnly")
			}
		}, false},
		{"FilesystemReadOnly", func(b *bench) { b.pass(48 * time.Hour); b.Tick() }, false},
		{"FilesystemReadOnly", func(b *bench) {
			b.Cover([]string{"FilesystemReadOnly"})
			b.reboot()
			b.Cover([]string{"FilesystemReadOnly"})
			b.SettleUncovered()
		}, false},
		{"FilesystemReadOnly", func(b *bench) { b.reboot(); b.SettleUncovered() }, true},
		{"FilesystemReadOnly", func(b *bench) { b.restart(); b.SettleUncovered() }, false},
		{"FilesystemShutdown", func(b *bench) {
			for range 5 {
				b.sample("mounts", "FilesystemShutdown")
			}
		}, false},
		{"FilesystemShutdown", func(b *bench) { b.reboot() }, true},
		{"NvidiaRowRemapFailure", func(b *bench) { b.reboot(); b.SettleUncovered() }, false},
		{"NvidiaRowRemapFailure", func(b *bench) { b.AllClear("NvidiaRowRemapFailure", "sda1", "ann") }, true},
		{"NvidiaRowRemapFailure", func(b *bench) { b.AllClear("NvidiaRowRemapFailure", "", "ann") }, true},
		{"NvidiaRowRemapFailure", func(b *bench) { b.AllClear("NvidiaRowRemapFailure", "sdb", "ann") }, false},
		{"NvidiaXID79Error", func(b *bench) { b.reboot() }, true},
		{"NvidiaXID79Error", func(b *bench) {
			b.Observe(health.Finding{Reason: "NvidiaRecoveryAction", Condition: accel, Subject: "sda1", Clears: true})
		}, true},
		{"NvidiaXID79Error", func(b *bench) {
			b.Observe(health.Finding{Reason: "NvidiaRecoveryAction", Condition: accel, Subject: "gpu2", Clears: true})
		}, false},
		{"NvidiaGPULost", func(b *bench) {
			b.Observe(health.Finding{Reason: "NvidiaRecoveryAction", Condition: accel, Subject: "sda1", Clears: true})
		}, false},
		{"NvidiaRecoveryAction", func(b *bench) {
			b.Observe(health.Finding{Reason: "NvidiaRecoveryAction", Condition: accel, Subject: "sda1", Clears: true})
		}, true},
	} {
		b := newBench(t)
		b.sees(c.reason, "sda1")
		cond := b.finding(c.reason, "", "").Condition
		b.is(cond, false, c.reason)
		c.after(b)
		if got := healthyAgain(b, cond); got != c.healthy {
			t.Errorf("%s: healthy = %v, want %v", c.reason, got, c.healthy)
		}
		if ended := len(b.notices(Recovered)); ended != map[bool]int{true: 1, false: 0}[c.healthy] {
			t.Errorf("%s: %d notices of recovery", c.reason, ended)
		}
	}
}

func TestAWarningNeverTurnsACondition(t *testing.T) {
	b := newBench(t)
	b.Evaluated(kernel)
	for range 1000 {
		b.sees("KernelOops", "")
	}
	b.is(kernel, true, "KernelIsReady")
}

func TestAnUnevaluatedConditionIsNotWritten(t *testing.T) {
	b := newBench(t)
	b.sees("KernelOops", "")
	if c := b.condition(kernel); c != nil {
		t.Errorf("written before anything was evaluated: %+v", c)
	}
	b.Evaluated(health.NetworkingReady)
	if c := b.condition(health.NetworkingReady); c != nil {
		t.Errorf("a monitor that is off wrote %+v", c)
	}
}

func TestTheOldestFatalNamesTheConditionAndTheTransitionStandsStill(t *testing.T) {
	b := newBench(t)
	b.sees("NvidiaXID79Error", "gpu0")
	since := b.is(accel, false, "NvidiaXID79Error").Since
	for i := range 20 {
		b.pass(time.Minute)
		b.sees("NvidiaGPULost", fmt.Sprintf("gpu%d", i%3))
		b.sees("NvidiaXID79Error", "gpu0")
		c := b.is(accel, false, "NvidiaXID79Error")
		if !c.Since.Equal(since) {
			t.Fatalf("the transition moved to %s", c.Since)
		}
	}
	c := b.is(accel, false, "NvidiaXID79Error")
	if want := "gpu0: it is broken; also NvidiaGPULost (gpu0), NvidiaGPULost (gpu1), NvidiaGPULost (gpu2)"; c.Message != want {
		t.Errorf("message %q, want %q", c.Message, want)
	}
	// The first one ends, the other keeps the condition False since the same time.
	b.AllClear("NvidiaXID79Error", "", "ann")
	if c := b.is(accel, false, "NvidiaGPULost"); !c.Since.Equal(since) {
		t.Errorf("the transition moved to %s when only the reason changed", c.Since)
	}
}

func TestMessagesAreBoundedAndClean(t *testing.T) {
	b := newBench(t)
	for i := range 300 {
		f := b.finding("NvidiaGPULost", fmt.Sprintf("gpu%d\x1b[31m\n%s", i, strings.Repeat("é\xff", 200)), "")
		f.Message = strings.Repeat("m", 5000)
		b.Observe(f)
	}
	b.is(accel, false, "NvidiaGPULost")
	b.SetBlind(accel, []string{"kmsg"})
	c := b.is(accel, false, "NvidiaGPULost")
	if len(c.Message) > 1<<10 || strings.ContainsAny(c.Message, "\x1b\n") || !utf8.ValidString(c.Message) {
		t.Errorf("%d bytes: %q", len(c.Message), c.Message)
	}
	if !strings.Contains(c.Message, "cannot read kmsg") {
		t.Error("the message does not say that it is blind")
	}
}

func TestBlindnessKeepsStatusReasonAndTransition(t *testing.T) {
	b := newBench(t)
	b.sees("FilesystemShutdown", "sda1")
	before := b.is(storage, false, "FilesystemShutdown")
	b.pass(time.Hour)
	b.SetBlind(storage, []string{"kmsg"})
	during := b.is(storage, false, "FilesystemShutdown")
	if !during.Since.Equal(before.Since) || len(during.Blind) != 1 {
		t.Errorf("during: %+v", during)
	}
	b.SetBlind(storage, nil)
	if after := b.is(storage, false, "FilesystemShutdown"); after.Message != before.Message || after.Blind != nil {
		t.Errorf("after: %+v", after)
	}
}

func TestOneIncidentIsToldOnceAndThenByMilestones(t *testing.T) {
	b := newBench(t)
	told := []int{}
	for range 150 {
		b.sees("KernelOops", "")
		for _, n := range b.Pending() {
			told = append(told, n.Count)
			b.Delivered(n)
		}
	}
	if fmt.Sprint(told) != "[1 2 10 100]" {
		t.Errorf("told at %v", told)
	}
	b.pass(4 * time.Minute)
	b.Tick()
	if len(b.Pending()) != 0 {
		t.Error("told before five minutes were over")
	}
	b.pass(2 * time.Minute)
	b.Tick()
	if p := b.Pending(); len(p) != 1 || p[0].Count != 150 {
		t.Errorf("after five minutes: %+v", p)
	}
}

func TestANoticeThatGrewWhileItWasSentIsSentAgain(t *testing.T) {
	b := newBench(t)
	b.sees("KernelOops", "")
	sent := b.Pending()[0]
	b.sees("KernelOops", "")
	b.Delivered(sent)
	if p := b.Pending(); len(p) != 1 || p[0].Count != 2 || p[0].Key != sent.Key {
		t.Errorf("%+v", p)
	}
}

func TestARecordThatIsReadAgainCountsOnce(t *testing.T) {
	b := newBench(t)
	f := b.finding("KernelOops", "", "kmsg/boot-1/17")
	if out := b.Observe(f); !out.New {
		t.Fatalf("%+v", out)
	}
	for range 3 {
		b.restart()
		if out := b.Observe(f); out.Counted {
			t.Fatalf("counted again: %+v", out)
		}
	}
	if p := b.Pending(); len(p) != 1 || p[0].Count != 1 {
		t.Errorf("%+v", p)
	}
	for i := range 2 * maxSeen {
		b.Observe(b.finding("AppCrash", fmt.Sprint(i%5), fmt.Sprintf("kmsg/boot-1/%d", 100+i)))
	}
	b.Flush()
	b.restart()
	if out := b.Observe(b.finding("AppCrash", fmt.Sprint((2*maxSeen-1)%5), fmt.Sprintf("kmsg/boot-1/%d", 100+2*maxSeen-1))); out.Counted {
		t.Error("the last of many records was counted again")
	}
}

func TestAtAFirstStartOldWarningsAreHistoryAndOldFatalsCount(t *testing.T) {
	b := newBench(t)
	old := b.finding("KernelOops", "", "kmsg/boot-1/1")
	old.At = b.at.Add(-11 * time.Minute)
	b.Observe(old)
	young := b.finding("SoftLockup", "", "kmsg/boot-1/2")
	young.At = b.at.Add(-9 * time.Minute)
	b.Observe(young)
	fatal := b.finding("FilesystemShutdown", "sda1", "kmsg/boot-1/3")
	fatal.At = b.at.Add(-50 * time.Minute)
	b.Observe(fatal)
	b.is(storage, false, "FilesystemShutdown")
	var told []string
	for _, n := range b.Pending() {
		told = append(told, n.Reason)
	}
	if got := strings.Join(told, " "); got != "SoftLockup FilesystemShutdown" {
		t.Errorf("told %q", got)
	}
	found := false
	for _, in := range b.View().Incidents {
		found = found || in.Reason == "KernelOops"
	}
	if !found {
		t.Error("the old warning is not in the history")
	}
}

func TestAFaultOfAnEarlierBootIsHistory(t *testing.T) {
	b := newBench(t)
	f := b.finding("FilesystemShutdown", "sda1", "journal/x")
	f.Boot = "boot-0"
	b.Observe(f)
	if c := b.condition(storage); c != nil {
		t.Errorf("%+v", c)
	}
	f = b.finding("FilesystemShutdown", "sda1", "journal/y")
	f.Boot = "boot1" // as the journal writes it
	b.Observe(f)
	b.is(storage, false, "FilesystemShutdown")
}

func TestTheSameFaultAfterTwoRebootsNeedsReplacement(t *testing.T) {
	b := newBench(t)
	replace := func() bool {
		for _, f := range b.View().Findings {
			if f.Reason == "NvidiaXID79Error" {
				return f.Replace
			}
		}
		t.Fatal("not active")
		return false
	}
	for i := range 4 {
		b.sees("NvidiaXID79Error", "gpu0")
		b.sees("NvidiaXID79Error", "gpu0")
		if want := i >= 2; replace() != want {
			t.Fatalf("after %d reboots: replace = %v", i, replace())
		}
		if i < 3 {
			b.reboot()
			b.is(accel, true, "AcceleratedHardwareIsReady")
		}
	}
	b.AllClear("NvidiaXID79Error", "", "ann, who changed the card")
	b.sees("NvidiaXID79Error", "gpu0")
	if replace() {
		t.Error("a repaired GPU is to be replaced at its first fault")
	}
}

func TestUserspaceCannotTurnACondition(t *testing.T) {
	for _, trust := range []bool{false, true} {
		b := newBench(t)
		b.SetPolicy(Policy{TrustUserspace: trust})
		f := b.finding("FilesystemShutdown", "sda1", "kmsg/boot-1/1")
		f.Origin = health.OriginUserspace
		out := b.Observe(f)
		if want := map[bool]health.Severity{false: health.Warning, true: health.Fatal}[trust]; out.Severity != want {
			t.Errorf("trust=%v: %+v", trust, out)
		}
		if sick := b.condition(storage) != nil; sick != trust {
			t.Errorf("trust=%v: condition written = %v", trust, sick)
		}
	}
}

func TestPolicyOverridesDisablesAndShadows(t *testing.T) {
	b := newBench(t)
	b.Evaluated(kernel)
	b.SetPolicy(Policy{Reasons: map[string]ReasonPolicy{
		"KernelOops":         {Severity: health.Fatal},
		"SoftLockup":         {Disabled: true},
		"NvidiaXID{N}Error":  {Shadow: true},
		"FilesystemShutdown": {Severity: health.Warning},
	}})
	if out := b.sees("SoftLockup", ""); out.Counted {
		t.Error("a disabled reason counted")
	}
	b.sees("FilesystemShutdown", "sda1")
	if b.condition(storage) != nil {
		t.Error("a Fatal that was overridden turned its condition")
	}
	out := b.sees("NvidiaXID79Error", "gpu0")
	if !out.Shadow || b.condition(accel) != nil || len(b.notices(WouldBe)) != 1 {
		t.Errorf("shadow: %+v", out)
	}
	b.sees("KernelOops", "")
	since := b.is(kernel, false, "KernelOops").Since
	b.pass(time.Hour)
	b.SetPolicy(Policy{})
	if c := b.is(kernel, true, "KernelIsReady"); c.Since.Equal(since) {
		t.Error("the status moved and the transition did not")
	}
	b.is(accel, false, "NvidiaXID79Error")
}

func TestATurnedOffMonitorHasNoConditionAndNoFaults(t *testing.T) {
	b := newBench(t)
	b.sees("FilesystemShutdown", "sda1")
	b.Disable(storage)
	if c := b.condition(storage); c != nil || len(b.View().Findings) != 0 {
		t.Errorf("%+v, %+v", c, b.View().Findings)
	}
	b.restart()
	b.Evaluated(storage)
	b.is(storage, true, "StorageIsReady")
}

func TestADamagedLedgerStartsEmptyAndSaysSo(t *testing.T) {
	for _, text := range []string{"", "{", "[]", `{"version":9}`, `{"version":1,"entries":[null]}`, `{"version":1,"entries":[{}]}`, `{"version":1,"seen":"%"}`} {
		l, err := Open(Options{Catalog: health.NewCatalog(), Store: &memStore{b: []byte(text)}, Boot: "b"})
		if err == nil || !l.Fresh() {
			t.Errorf("%q: err %v, fresh %v", text, err, l.Fresh())
		}
		l.Enable(kernel)
		l.Evaluated(kernel)
		if len(l.View().Conditions) != 1 {
			t.Errorf("%q: unusable", text)
		}
	}
}

func TestAStoreThatCannotBeWrittenLosesNothingInMemory(t *testing.T) {
	b := newBench(t)
	b.disk.fail = errors.New("read-only")
	b.sees("FilesystemShutdown", "sda1")
	b.is(storage, false, "FilesystemShutdown")
	if err := b.Flush(); err == nil {
		t.Error("the failure is not told")
	}
	b.disk.fail = nil
	if err := b.Flush(); err != nil {
		t.Error(err)
	}
	b.restart()
	b.is(storage, false, "FilesystemShutdown")
}

func TestTheLedgerIsBounded(t *testing.T) {
	b := newBench(t)
	b.sees("FilesystemShutdown", "sda1")
	for i := range 3 * maxEntries {
		b.sees("AppCrash", fmt.Sprint(i))
	}
	if n := len(b.state.Entries); n > maxEntries {
		t.Errorf("%d entries", n)
	}
	if n := len(b.Pending()); n > maxOutbox {
		t.Errorf("%d notices", n)
	}
	b.is(storage, false, "FilesystemShutdown")
}
