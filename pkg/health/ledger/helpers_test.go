package ledger

import (
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health"
)

// bench is a node: a clock, a disk and a boot that a test moves by hand.
type bench struct {
	t    *testing.T
	at   time.Time
	boot string
	up   time.Time
	disk memStore
	pol  Policy
	seq  int
	cat  *health.Catalog
	*Ledger
}

type memStore struct {
	b    []byte
	fail error
}

func (m *memStore) Load() ([]byte, error) {
	if m.b == nil {
		return nil, fs.ErrNotExist
	}
	return m.b, nil
}

func (m *memStore) Save(b []byte) error {
	if m.fail != nil {
		return m.fail
	}
	m.b = append([]byte(nil), b...)
	return nil
}

func newBench(t *testing.T) *bench {
	at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	b := &bench{t: t, at: at, boot: "boot-1", up: at.Add(-time.Hour), cat: health.NewCatalog()}
	b.restart()
	return b
}

// restart is a crash: what was not saved is lost.
func (b *bench) restart() {
	b.t.Helper()
	l, err := Open(Options{
		Catalog: b.cat, Store: &b.disk, Now: func() time.Time { return b.at },
		Boot: b.boot, BootTime: b.up, Policy: b.pol,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Ledger = l
	for _, c := range []health.ConditionType{health.KernelReady, health.StorageReady, health.AcceleratedHardwareReady} {
		l.Enable(c)
	}
}

func (b *bench) reboot() {
	b.pass(time.Minute)
	b.boot += "x"
	b.up = b.at
	b.pass(time.Minute)
	b.restart()
}

func (b *bench) pass(d time.Duration) { b.at = b.at.Add(d) }

// sees feeds a log finding with a position of its own and the catalogue's severity.
func (b *bench) sees(reason, subject string) Outcome {
	b.seq++
	return b.Observe(b.finding(reason, subject, fmt.Sprintf("kmsg/%s/%d", b.boot, b.seq)))
}

func (b *bench) finding(reason, subject, position string) health.Finding {
	b.t.Helper()
	row, ok := b.opts.Catalog.Lookup(reason)
	if !ok {
		b.t.Fatalf("no reason %s", reason)
	}
	return health.Finding{
		Reason: reason, Severity: row.Severity, Condition: row.Condition, Subject: subject,
		Message: "it is broken", Evidence: "line", At: b.at, Origin: health.OriginKernel, Position: position,
	}
}

func (b *bench) sample(check, reason string, subjects ...string) {
	s := Sample{Check: check, Reasons: []string{reason}}
	for _, sub := range subjects {
		f := b.finding(reason, sub, "")
		f.Origin = health.OriginCheck
		s.Findings = append(s.Findings, f)
	}
	b.Sampled(s)
}

func (b *bench) condition(t health.ConditionType) *Condition {
	for _, c := range b.View().Conditions {
		if c.Type == t {
			return &c
		}
	}
	return nil
}

// is fails the test unless the condition has the status and reason.
func (b *bench) is(t health.ConditionType, healthy bool, reason string) Condition {
	b.t.Helper()
	c := b.condition(t)
	if c == nil {
		b.t.Fatalf("%s is not written", t)
	}
	if c.Healthy != healthy || c.Reason != reason {
		b.t.Fatalf("%s = %v/%s (%s), want %v/%s", t, c.Healthy, c.Reason, c.Message, healthy, reason)
	}
	return *c
}

func (b *bench) notices(kind NoticeKind) []Notice {
	var out []Notice
	for _, n := range b.Pending() {
		if n.Kind == kind {
			out = append(out, n)
		}
	}
	return out
}
