package publish

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ekslogs/ekslogs/pkg/health"
	"github.com/ekslogs/ekslogs/pkg/health/annotation"
)

// errEarly is returned by a step that came before the pause after a failure was over.
var errEarly = errors.New("not yet")

// applied is what this process wrote and when, by its own clock.
type applied struct {
	at        time.Time
	findings  string // the set of findings that the annotation shows
	allClear  string // the all-clear that was obeyed last
	restored  time.Time
	tryAfter  time.Time
	changedAt time.Time // when the change that is to be written was first seen
	// heartbeats are the last ones known, wrote those that this process wrote.
	heartbeats map[health.ConditionType]time.Time
	wrote      map[health.ConditionType]time.Time
	words      map[health.ConditionType]corev1.NodeCondition
	// beaten are the conditions that this process has evaluated and said so.
	beaten map[health.ConditionType]bool
}

// step writes if something is to be written, and returns how long to wait for the
// next step if nothing changes.
func (p *Publisher) step(ctx context.Context, now time.Time, failures int) (time.Duration, error) {
	s := p.latest()
	if s == nil {
		return p.pace.heartbeat, nil // learn wakes us
	}
	if wait := p.applied.tryAfter.Sub(now); failures > 0 && wait > 0 {
		return wait, errEarly
	}
	if !p.adopted {
		p.adopted = true
		p.opts.Source.Adopt(s.adoptable())
		p.applied.heartbeats = map[health.ConditionType]time.Time{}
		for t, c := range s.conditions {
			p.applied.heartbeats[t] = c.LastHeartbeatTime.Time
		}
	}
	d := p.opts.Source.Desired()
	standby := p.standby(s, d.On, now)
	if standby == "" && p.obey(s) {
		d = p.opts.Source.Desired()
	}
	w, why, wait := p.plan(s, d, standby, now)
	if why == "" {
		p.applied.changedAt = time.Time{}
		return wait, nil
	}
	if p.applied.changedAt.IsZero() {
		p.applied.changedAt = now
	}
	if err := p.send(ctx, w); err != nil {
		p.opts.Source.Published(0, err)
		pause := p.pause(failures)
		p.applied.tryAfter = time.Now().Add(pause)
		return pause, err
	}
	p.opts.Source.Published(time.Since(p.applied.changedAt), nil)
	p.applied.changedAt = time.Time{}
	if why == "restore" {
		p.applied.restored = now
	}
	return p.untilHeartbeat(time.Now()), nil
}

// plan decides whether to write and what. why is empty when nothing is to be
// written, and wait is how long until something may be.
func (p *Publisher) plan(s *snapshot, d Desired, standby string, now time.Time) (w write, why string, wait time.Duration) {
	wait = p.heartbeat()
	d.Health.Instance, d.Health.Standby = p.opts.Instance, standby
	text, err := annotation.Encode(d.Health)
	if err != nil {
		p.log.Error("the health annotation cannot be written", "err", err)
		text = s.health
	}
	w.annotation, w.obeyed = text, s.allClear != "" && s.allClear == p.applied.allClear
	w.findings = findingSet(d.Health)

	beating, evaluated := false, false
	if standby == "" {
		w.remove = removable(s, d.Off)
		for _, c := range d.Conditions {
			beat := metav1.NewTime(now).Rfc3339Copy().Time
			if len(c.Blind) > 0 {
				if beat = p.applied.heartbeats[c.Type]; beat.IsZero() {
					beat = c.Since
				}
			} else {
				beating = true
				w.beating = append(w.beating, c.Type)
				evaluated = evaluated || !p.applied.beaten[c.Type]
			}
			nc := nodeCondition(c, beat)
			w.conditions = append(w.conditions, nc)
			have, ok := s.conditions[c.Type]
			switch {
			case ok && sameWords(have, nc):
			case p.wroteBefore(nc) && now.Sub(p.applied.restored) < p.pace.restore:
				// Somebody else's doing, which was put right a moment ago.
				wait = min(wait, p.pace.restore)
			case p.wroteBefore(nc) && why == "":
				why = "restore"
			default:
				why = "change"
			}

		}
	}
	if beating {
		wait = min(wait, p.untilHeartbeat(now))
	}
	switch {
	case len(w.remove) > 0:
		why = "change"
	case why != "":
	case w.obeyed:
		why = "obeyed"
	case p.own && beating && now.Sub(p.applied.at) >= p.heartbeat():
		why = "heartbeat"
	case !p.own || evaluated || w.findings != p.applied.findings:
		// evaluated: after a restart a condition stays as it was, its heartbeat too,
		// until what it needs has been looked at. Then it is alive again, and says so.
		if left := p.pace.annotation - now.Sub(p.applied.at); p.own && left > 0 {
			wait = min(wait, left)
		} else {
			why = "annotation"
		}
	}
	return w, why, wait
}

// wroteBefore reports whether this very condition was written by this process, so
// that a difference on the Node is somebody else's doing.
func (p *Publisher) wroteBefore(c corev1.NodeCondition) bool {
	last, ok := p.applied.words[health.ConditionType(c.Type)]
	return ok && sameWords(last, c)
}

func (p *Publisher) send(ctx context.Context, w write) error {
	body, err := w.body()
	if err != nil {
		return fmt.Errorf("patch of node %s: %w", p.opts.Node, err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.pace.timeout)
	defer cancel()
	var n corev1.Node
	err = p.opts.Core.Patch(types.StrategicMergePatchType).Resource("nodes").Name(p.opts.Node).SubResource("status").
		Param("fieldManager", Manager).Body(body).Do(ctx).Into(&n)
	if err != nil {
		return fmt.Errorf("patch of node %s: %w", p.opts.Node, err)
	}
	p.own = true
	p.applied.at = time.Now()
	p.applied.findings = w.findings
	p.applied.words = map[health.ConditionType]corev1.NodeCondition{}
	for _, c := range w.conditions {
		t := health.ConditionType(c.Type)
		p.applied.words[t] = c
		p.applied.heartbeats[t] = c.LastHeartbeatTime.Time
		if p.applied.wrote == nil {
			p.applied.wrote = map[health.ConditionType]time.Time{}
		}
		p.applied.wrote[t] = c.LastHeartbeatTime.Time
	}
	if p.applied.beaten == nil {
		p.applied.beaten = map[health.ConditionType]bool{}
	}
	for _, t := range w.beating {
		p.applied.beaten[t] = true
	}
	p.learn(takeSnapshot(&n))
	return nil
}

// obey passes a person's all-clear on, once for each new value, and reports whether
// it did.
func (p *Publisher) obey(s *snapshot) bool {
	if s.allClear == p.applied.allClear {
		return false
	}
	p.applied.allClear = s.allClear
	if s.allClear == "" {
		return false
	}
	p.opts.Source.AllClear(s.allClear, s.allClearBy)
	return true
}

// heartbeat is the interval of heartbeats: up to a tenth shorter by the node's name,
// so that the nodes of a fleet that started together do not write together.
func (p *Publisher) heartbeat() time.Duration {
	h := fnv.New32a()
	h.Write([]byte(p.opts.Node))
	return p.pace.heartbeat - p.pace.heartbeat*time.Duration(h.Sum32()%100)/1000
}

func (p *Publisher) untilHeartbeat(now time.Time) time.Duration {
	if !p.own {
		return p.heartbeat()
	}
	return max(p.heartbeat()-now.Sub(p.applied.at), time.Millisecond)
}

// pause is how long to wait after the given number of failures in a row.
func (p *Publisher) pause(failures int) time.Duration {
	d := p.pace.retry << min(failures, 10)
	return min(d, p.pace.retryMax)
}

// findingSet is what of the annotation is worth a write of its own: which faults are
// active, which monitors watch and what the GPUs need, but no counts and times.
func findingSet(h annotation.Health) string {
	var b strings.Builder
	fmt.Fprintln(&b, h.Standby)
	for _, f := range h.Findings {
		fmt.Fprintln(&b, f.Condition, f.Reason, f.Severity, f.Subject, f.Replace)
	}
	for _, m := range h.Monitors {
		fmt.Fprintln(&b, m.Name, m.State)
	}
	for _, g := range h.GPUs {
		fmt.Fprintln(&b, g.UUID, g.PCI, g.Verdict, g.Reason)
	}
	return b.String()
}
