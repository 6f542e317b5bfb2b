package nvmlhelper

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/ekslogs/ekslogs/pkg/health/nvidia/gpustate"
)

// Options say how a Helper runs its child.
type Options struct {
	// Command makes the command of a new child: "node-agent nvml-helper".
	Command func() *exec.Cmd
	// Wait is how long Poll waits for an answer. 0 means 10 s.
	Wait time.Duration
	// HungAfter is after what time without an answer the driver counts as hung. 0
	// means 2 minutes.
	HungAfter time.Duration
	// OnEvent, if set, gets the events. It must not block.
	OnEvent func(Event)
}

// Helper runs the child: never more than one at a time, not even when one cannot be
// killed. It is safe for concurrent use.
type Helper struct {
	o     Options
	mu    sync.Mutex
	child *child
	id    uint64
}

// NewHelper returns a helper whose child is started by the first Poll.
func NewHelper(o Options) *Helper {
	if o.Wait <= 0 {
		o.Wait = 10 * time.Second
	}
	if o.HungAfter <= 0 {
		o.HungAfter = 2 * time.Minute
	}
	return &Helper{o: o}
}

// child is one process.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// gone is closed when the process has ended and was waited for.
	gone chan struct{}

	mu sync.Mutex
	// pending is the request that has no answer yet, since when, and where the answer
	// goes; ID 0 when there is none.
	pending uint64
	since   time.Time
	answer  chan reply
}

// Poll takes a sample. Its error is an *Unavailable, or ErrBusy, ErrHung, or what
// went wrong with the child. It returns after Options.Wait at the latest.
func (h *Helper) Poll(ctx context.Context) (gpustate.State, error) {
	r, err := h.ask(ctx, opPoll)
	switch {
	case err != nil:
		return gpustate.State{}, err
	case r.Failure != nil:
		return gpustate.State{}, r.Failure
	case r.State == nil:
		return gpustate.State{}, fmt.Errorf("the NVML helper answered without a sample")
	}
	return *r.State, nil
}

// Close makes the child close NVML; the next Poll opens it again. Without a child
// there is nothing to close.
func (h *Helper) Close(ctx context.Context) error {
	h.mu.Lock()
	running := h.child != nil && !h.child.hasEnded()
	h.mu.Unlock()
	if !running {
		return nil
	}
	_, err := h.ask(ctx, opClose)
	return err
}

// Stop ends the child. One that cannot be killed is left behind.
func (h *Helper) Stop() {
	h.mu.Lock()
	c := h.child
	h.mu.Unlock()
	if c == nil {
		return
	}
	c.stdin.Close()
	select {
	case <-c.gone:
	case <-time.After(time.Second):
		c.kill()
	}
}

// PID returns the process id of the child, 0 when there is none.
func (h *Helper) PID() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.child == nil || h.child.hasEnded() {
		return 0
	}
	return h.child.cmd.Process.Pid
}

func (h *Helper) ask(ctx context.Context, op string) (reply, error) {
	c, answer, err := h.send(op)
	if err != nil {
		return reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.o.Wait)
	defer cancel()
	select {
	case r := <-answer:
		return r, nil
	case <-c.gone:
		return reply{}, fmt.Errorf("the NVML helper ended: %s", c.cmd.ProcessState)
	case <-ctx.Done():
		return reply{}, ErrBusy
	}
}

// send gives the child a request, and starts one if there is none.
func (h *Helper) send(op string) (*child, <-chan reply, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.child != nil && !h.child.hasEnded() {
		if since, busy := h.child.busy(); busy {
			if time.Since(since) < h.o.HungAfter {
				return nil, nil, ErrBusy
			}
			// If it dies of that, the next poll starts another.
			h.child.kill()
			return nil, nil, ErrHung
		}
	} else {
		c, err := h.start()
		if err != nil {
			return nil, nil, err
		}
		h.child = c
	}
	h.id++
	answer, err := h.child.ask(request{ID: h.id, Op: op})
	return h.child, answer, err
}

func (h *Helper) start() (*child, error) {
	cmd := h.o.Command()
	// A process group of its own, so that a signal to ours does not reach it; and it
	// ends with us, if it can be ended.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the NVML helper: %w", err)
	}
	c := &child{cmd: cmd, stdin: stdin, gone: make(chan struct{})}
	go c.read(stdout, h.o.OnEvent)
	return c, nil
}

func (c *child) hasEnded() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func (c *child) busy() (since time.Time, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.pending != 0
}

func (c *child) kill() { _ = c.cmd.Process.Kill() }

func (c *child) ask(r request) (<-chan reply, error) {
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	answer := make(chan reply, 1)
	c.mu.Lock()
	c.pending, c.since, c.answer = r.ID, time.Now(), answer
	c.mu.Unlock()
	// The pipe holds a line even when the child does not read: this cannot block.
	if _, err := c.stdin.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("the NVML helper does not listen: %w", err)
	}
	return answer, nil
}

// read takes the child's lines until it ends.
func (c *child) read(stdout io.Reader, onEvent func(Event)) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var r reply
		if json.Unmarshal(lines.Bytes(), &r) != nil {
			continue // a library's own words on standard output
		}
		if r.Event != nil && onEvent != nil {
			onEvent(*r.Event)
		}
		c.mu.Lock()
		if r.ID != 0 && r.ID == c.pending {
			c.pending = 0
			c.answer <- r
		}
		c.mu.Unlock()
	}
	_ = c.cmd.Wait()
	close(c.gone)
}
