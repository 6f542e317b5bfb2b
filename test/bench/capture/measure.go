package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/kube"
	"github.com/ekslogs/ekslogs/test/bench/lab"
)

const (
	sampleEvery = 50 * time.Millisecond
	askEvery    = 10 // samples
)

// ourCapture is a capture by the agent. Memory is in bytes of RSS.
type ourCapture struct {
	made
	message string
	// idle is the agent before; peak the most that it and its children had together.
	idle, peak int64
	// The peaks of each by itself.
	agentPeak, childPeak, childAnonymous int64
}

// captured asks the agent for a bundle and watches it at work.
func captured(ctx context.Context, l *lab.Lab, a *lab.Agent, root string) (*ourCapture, error) {
	client, err := kube.NewClient(l.Config, v1alpha1.GroupVersion())
	if err != nil {
		return nil, err
	}
	before, err := lab.ReadMemory(a.PID)
	if err != nil {
		return nil, err
	}
	agent, err := procfs.NewProc(a.PID)
	if err != nil {
		return nil, err
	}
	cpuBefore, err := cpuTime(agent)
	if err != nil {
		return nil, err
	}
	c := &ourCapture{idle: before.RSS}
	nd := &v1alpha1.NodeDiagnostic{ObjectMeta: metav1.ObjectMeta{Name: a.Node}}
	nd.APIVersion, nd.Kind = v1alpha1.GroupVersion().String(), "NodeDiagnostic"
	nd.Spec.LogCapture = &v1alpha1.LogCapture{Destination: v1alpha1.DestinationNode}
	start := time.Now()
	if err := client.Post().Resource(v1alpha1.Resource).Body(nd).Do(ctx).Error(); err != nil {
		return nil, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := client.Delete().Resource(v1alpha1.Resource).Name(a.Node).Do(ctx).Error(); err != nil {
			fmt.Fprintln(os.Stderr, "left behind:", err)
		}
	}()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
		c.sample(a.PID)
		if n%askEvery != 0 {
			continue
		}
		got := &v1alpha1.NodeDiagnostic{}
		if err := client.Get().Resource(v1alpha1.Resource).Name(a.Node).Do(ctx).Into(got); err != nil {
			return nil, err
		}
		if len(got.Status.CaptureStatuses) == 0 || got.Status.CaptureStatuses[0].State.Completed == nil {
			continue
		}
		done := got.Status.CaptureStatuses[0].State.Completed
		if done.Reason == v1alpha1.ReasonFailure {
			return nil, fmt.Errorf("the capture failed: %s", done.Message)
		}
		c.message = done.Message
		break
	}
	info, err := os.Stat(filepath.Join(root, "var/log/support", a.Node+"-logs.tar.gz"))
	if err != nil {
		return nil, err
	}
	// When the bundle was renamed to its place, not when we asked.
	placed, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, errors.New("the bundle's times are not known on this system")
	}
	c.wall, c.bytes = time.Unix(placed.Ctim.Unix()).Sub(start), info.Size()
	cpuAfter, err := cpuTime(agent)
	if err != nil {
		return nil, err
	}
	c.cpu = cpuAfter - cpuBefore
	return c, nil
}

// sample looks at the agent and its children once.
func (c *ourCapture) sample(pid int) {
	tree, err := lab.Tree(pid)
	if err != nil {
		return // the next look at the API server tells of an agent that is gone
	}
	var sum int64
	for i, p := range tree {
		proc, err := procfs.NewProc(p)
		if err != nil {
			continue
		}
		status, err := proc.NewStatus()
		if err != nil {
			continue
		}
		sum += int64(status.VmRSS)
		if i == 0 {
			c.agentPeak = max(c.agentPeak, int64(status.VmHWM))
		} else {
			c.childPeak = max(c.childPeak, int64(status.VmHWM))
			c.childAnonymous = max(c.childAnonymous, int64(status.RssAnon))
		}
	}
	c.peak = max(c.peak, sum)
}

// cpuTime is the time of a process and of the children that it has waited for.
func cpuTime(p procfs.Proc) (time.Duration, error) {
	const perSecond = 100 // USER_HZ is 100 on all platforms that Linux runs Go on
	s, err := p.Stat()
	if err != nil {
		return 0, err
	}
	ticks := int64(s.UTime) + int64(s.STime) + int64(s.CUTime) + int64(s.CSTime)
	return time.Duration(ticks) * time.Second / perSecond, nil
}
