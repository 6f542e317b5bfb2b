// Package publish tells the API server what the ledger knows: the node's conditions
// and the health annotation in one patch, and Events.
package publish

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/pkg/health/ledger"
	"github.com/ekslogs/ekslogs/pkg/kube"
)

// Source is what the publisher publishes. Its methods do not block.
type Source interface {
	// Desired is what the Node shall show now.
	Desired() Desired
	// Adopt is called before the first write, with our conditions as the Node has them.
	Adopt([]ledger.NodeCondition)
	// AllClear is a person's word, from the Node's annotation.
	AllClear(value, by string)
	// Rival is called when another agent is found to write our conditions, upon which
	// nothing but the annotation is written, and with "" when this one is in charge
	// again.
	Rival(name string)
	// Published is called after each write: how long after the change, and with which
	// error.
	Published(latency time.Duration, err error)
}

// Options make a Publisher.
type Options struct {
	// Node is the name of the Node.
	Node string
	// Core is a client of the core group.
	Core rest.Interface
	// Source is what to publish.
	Source Source
	// Instance names this process among agents of its kind.
	Instance string
	// Takeover writes even when another agent writes the same conditions.
	Takeover bool
	Log      *slog.Logger
}

// Publisher keeps the Node's status as the source wants it. It is safe for
// concurrent use.
type Publisher struct {
	opts Options
	log  *slog.Logger
	pace pace

	wake chan struct{}

	mu   sync.Mutex
	node *snapshot // the latest, nil when there is no Node
	uid  string

	// The rest belongs to the goroutine of Run.
	adopted bool
	own     bool // this process has written
	rival   rival
	silent  rival // one that counts as gone as long as it does not write again
	applied applied
}

// pace are the publisher's times. Tests shorten them.
type pace struct {
	coalesce   time.Duration // from the first change to the write that carries it
	heartbeat  time.Duration
	annotation time.Duration // between writes for the annotation's sake alone
	restore    time.Duration // between writes that put right what others changed
	timeout    time.Duration // of a request
	retry      time.Duration // first pause after a failure; doubles up to retryMax
	retryMax   time.Duration
}

func defaultPace() pace {
	return pace{
		coalesce: 20 * time.Millisecond, heartbeat: 5 * time.Minute, annotation: 30 * time.Second,
		restore: 10 * time.Second, timeout: 10 * time.Second, retry: 250 * time.Millisecond, retryMax: 30 * time.Second,
	}
}

// New returns a publisher.
func New(opts Options) *Publisher {
	return &Publisher{opts: opts, log: opts.Log, pace: defaultPace(), wake: make(chan struct{}, 1)}
}

// Wake says that Desired changed.
func (p *Publisher) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// UID is the uid of the Node, for Events about it; empty while it is not known.
func (p *Publisher) UID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.uid
}

// Registered reports whether the Node exists at the API server.
func (p *Publisher) Registered() bool { return p.latest() != nil }

func (p *Publisher) latest() *snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.node
}

// learn takes a new state of the Node, unless it is older than what is known.
func (p *Publisher) learn(s *snapshot) {
	p.mu.Lock()
	if s != nil && p.node != nil && s.version != 0 && s.version < p.node.version {
		// Answers to patches and the watch come by different ways.
		p.mu.Unlock()
		return
	}
	p.node = s
	if s != nil {
		p.uid = s.uid
	}
	p.mu.Unlock()
	p.Wake()
}

// Run publishes until ctx ends.
func (p *Publisher) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() {
		kube.Follow(ctx, p.opts.Core, "nodes", p.opts.Node, &corev1.Node{}, p.log, func(n *corev1.Node) {
			if n == nil {
				p.learn(nil)
				return
			}
			p.learn(takeSnapshot(n))
		})
	})
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var failures int
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
			if failures == 0 && !sleep(ctx, p.pace.coalesce) {
				return nil
			}
		case <-timer.C:
		}
		wait, err := p.step(ctx, time.Now(), failures)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errEarly) {
			failures++
			p.log.Warn("the node's status could not be written, it is tried again", "err", err, "pause", wait)
		} else if err == nil {
			failures = 0
		}
		timer.Reset(wait)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
