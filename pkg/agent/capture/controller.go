// Package capture answers the NodeDiagnostic of one node: it makes the bundle that
// the object asks for, in a process of its own, takes it where the object says, and
// reports in the object's status.
package capture

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/kube"
)

// Config is what a Controller needs. All is required unless it says otherwise.
type Config struct {
	// Host is the machine, Node its name in the cluster.
	Host *host.Host
	Node string
	// Version is the agent's version.
	Version string
	// Diagnostics is a client of the group eks.amazonaws.com, Core one of the core
	// group.
	Diagnostics, Core rest.Interface
	// StateDir is a folder on the host for bundles on their way to a URL.
	StateDir string
	// Retention is how long a bundle stays on the node after it was made.
	Retention time.Duration
	// Timeout bounds a capture with its upload. 0 means 15 min.
	Timeout time.Duration
	// Command is the program, with its arguments, that does Work. Nil means this
	// program with the argument "capture".
	Command []string
	// Findings returns the text of findings.json. Optional.
	Findings func() []byte
	// Standby says that another agent is in charge of the node: its captures and its
	// bundle, which lies where ours would, are then left alone. Optional.
	Standby func() bool
	Log     *slog.Logger
}

// DefaultTimeout bounds a capture with its upload.
const DefaultTimeout = 15 * time.Minute

// Controller is a component of the agent. Make it with New.
type Controller struct {
	cfg    Config
	job    *job
	status *statusWriter
	log    *slog.Logger

	// The rest belongs to the goroutine of Run.
	seen   bool                     // the API server has said whether there is an object
	object *v1alpha1.NodeDiagnostic // nil: there is none
	mem    memory
	cancel context.CancelCauseFunc // ends the capture at work
	ended  chan outcome            // takes the end of it
	retry  time.Duration           // the pause before the next try after a failed write
	wake   time.Time               // when to look again without being told; zero: never
}

const (
	retryMin = time.Second
	retryMax = 30 * time.Second
)

// New returns a controller.
func New(cfg Config) *Controller {
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if len(cfg.Command) == 0 {
		// The link leads to this very program, also after an upgrade has replaced
		// the file that it was started from.
		cfg.Command = []string{"/proc/self/exe", "capture"}
	}
	return &Controller{
		cfg: cfg,
		log: cfg.Log,
		job: &job{
			host: cfg.Host, node: cfg.Node, version: cfg.Version, stateDir: cfg.StateDir,
			timeout: cfg.Timeout, command: cfg.Command, env: append(os.Environ(), childMemory, "GOMAXPROCS=2"),
			facts: apiFacts(cfg.Core, cfg.Node), findings: cfg.Findings, log: cfg.Log,
		},
		status: &statusWriter{client: cfg.Diagnostics, name: cfg.Node},
		ended:  make(chan outcome, 1),
	}
}

// Name implements agent.Component.
func (c *Controller) Name() string { return "capture" }

// Abandoned returns how many capture processes could not be killed since the agent
// started. It is safe for concurrent use.
func (c *Controller) Abandoned() int64 { return c.job.abandoned.Load() }

// Run implements agent.Component.
func (c *Controller) Run(ctx context.Context) error {
	// What the last run of this component believed may be stale; mem stays, it is
	// about what this process has done.
	c.seen, c.object, c.wake, c.retry = false, nil, time.Time{}, 0
	objects := make(chan *v1alpha1.NodeDiagnostic, 1)
	watching := make(chan struct{})
	wctx, stop := context.WithCancel(ctx)
	go func() {
		defer close(watching)
		kube.Follow(wctx, c.cfg.Diagnostics, v1alpha1.Resource, c.cfg.Node, &v1alpha1.NodeDiagnostic{}, c.log,
			func(nd *v1alpha1.NodeDiagnostic) { latest(objects, nd) })
	}()
	defer func() {
		stop()
		c.shutdown()
		<-watching
	}()
	c.step(ctx)
	for {
		timer := c.timer()
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case nd := <-objects:
			if c.seen && c.object != nil && (nd == nil || nd.UID != c.object.UID) {
				c.log.Info("the NodeDiagnostic was deleted")
			}
			c.seen, c.object, c.retry = true, nd, 0
		case end := <-c.ended:
			c.settle(end)
		case <-timer.C:
		}
		timer.Stop()
		c.step(ctx)
	}
}

// standbyPause is how long a request waits at most after another agent has left.
const standbyPause = 30 * time.Second

// standsBy says that the other agent of the node answers. A capture of ours that is
// at work, or not reported yet, is still seen through.
func (c *Controller) standsBy() bool {
	unreported := c.seen && decide(c.object, c.mem) == actReport
	return c.cfg.Standby != nil && c.mem.running == nil && !unreported && c.cfg.Standby()
}

// step does what there is to do, until the next message.
func (c *Controller) step(ctx context.Context) {
	c.wake = time.Time{}
	if c.standsBy() {
		c.wakeBy(time.Now().Add(standbyPause))
		return
	}
	defer c.sweep()
	if !c.seen {
		return
	}
	var err error
	switch decide(c.object, c.mem) {
	case actNothing:
	case actCancel:
		c.cancel(errors.New("the request was edited or deleted"))
	case actDiscard:
		c.discard()
	case actStart:
		err = c.start(ctx)
	case actReport:
		err = c.write(ctx, c.mem.ended.key, v1alpha1.CaptureState{Completed: &c.mem.ended.state})
	case actDisown:
		c.log.Warn("found a capture that an earlier process of the agent did not finish")
		err = c.disown(ctx)
	}
	if err == nil && packetDue(c.object) {
		err = c.answerPacket(ctx)
	}
	if err != nil && !errors.Is(err, errSuperseded) && ctx.Err() == nil {
		c.retry = min(max(2*c.retry, retryMin), retryMax)
		c.log.Warn("the API server did not take what there is to say, trying again", "err", err, "pause", c.retry)
		c.wakeBy(time.Now().Add(c.retry))
	}
}

// start says Running and then captures. A capture whose start is not written is not
// begun: after a crash it would be taken for one that nobody has seen to yet, and a
// capture that crashes the agent would crash it for ever.
func (c *Controller) start(ctx context.Context) error {
	k, nd := keyOf(c.object), c.object
	id, now := rand.Text(), metav1.Now().Rfc3339Copy()
	if nd.Status.Capture(v1alpha1.CaptureTypeLog) == nil {
		// A bundle on disk is the answer to an object that is gone.
		c.discard()
	}
	err := c.write(ctx, k, v1alpha1.CaptureState{Running: &v1alpha1.CaptureStateRunning{StartedAt: now, CaptureID: id}})
	if err != nil {
		return err
	}
	cctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c.mem.running, c.mem.ended, c.cancel = &k, nil, cancel
	log := c.log.With("capture", id)
	log.Info("capture begins", "generation", k.Generation, "categories", nd.Spec.LogCapture.Categories)
	go func() {
		reason, message := c.job.run(cctx, nd)
		log.Info("capture ended", "reason", reason, "message", message)
		c.ended <- outcome{k, v1alpha1.CaptureStateCompleted{
			Reason: reason, Message: message, StartedAt: now, FinishedAt: metav1.Now().Rfc3339Copy(),
			CaptureID: id, ObservedGeneration: k.Generation,
		}}
	}()
	return nil
}

// settle takes note of the end of the capture at work. One that was cancelled is
// nobody's business any more, except that nothing of it stays.
func (c *Controller) settle(end outcome) {
	c.cancel(nil)
	c.mem.running, c.cancel = nil, nil
	// The node's Events on their way to the capture were the largest thing that this
	// process has ever held. There may be no other capture for months.
	debug.FreeOSMemory()
	if c.object != nil && keyOf(c.object) == end.key {
		c.mem.ended = &end
	}
}

// disown reports the capture of an earlier process as failed.
func (c *Controller) disown(ctx context.Context) error {
	state := v1alpha1.CaptureStateCompleted{
		Reason: v1alpha1.ReasonFailure, Message: "agent restarted during capture",
		StartedAt: metav1.Now().Rfc3339Copy(), FinishedAt: metav1.Now().Rfc3339Copy(), ObservedGeneration: c.object.Generation,
	}
	if r := c.object.Status.Capture(v1alpha1.CaptureTypeLog).State.Running; r != nil {
		state.StartedAt, state.CaptureID = r.StartedAt, r.CaptureID
	}
	c.mem.ended = &outcome{keyOf(c.object), state}
	return c.write(ctx, c.mem.ended.key, v1alpha1.CaptureState{Completed: &state})
}

// write writes the state of the log capture and keeps the object as it then is.
func (c *Controller) write(ctx context.Context, k key, state v1alpha1.CaptureState) error {
	return c.update(ctx, k, func(nd *v1alpha1.NodeDiagnostic) {
		setLog(nd, state)
		answerPacket(nd, metav1.Now().Rfc3339Copy())
	})
}

func (c *Controller) answerPacket(ctx context.Context) error {
	return c.update(ctx, keyOf(c.object), func(nd *v1alpha1.NodeDiagnostic) { answerPacket(nd, metav1.Now().Rfc3339Copy()) })
}

func (c *Controller) update(ctx context.Context, k key, change func(*v1alpha1.NodeDiagnostic)) error {
	nd, err := c.status.write(ctx, k, change)
	if err == nil {
		c.object = nd
	}
	return err
}

// shutdown ends the capture at work and says so.
func (c *Controller) shutdown() {
	if c.mem.running == nil {
		return
	}
	c.cancel(errors.New("the agent stops"))
	end := <-c.ended
	c.settle(end)
	if end.state.Reason == v1alpha1.ReasonFailure {
		end.state.Message = "the agent was stopped during the capture; edit the object, or make it anew, to capture again"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := c.write(ctx, end.key, v1alpha1.CaptureState{Completed: &end.state}); err != nil {
		c.log.Warn("could not report the end of the capture; the agent does so when it starts again", "err", fmt.Sprint(err))
	}
}
