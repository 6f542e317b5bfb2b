package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Agent is "node-agent run" for a Node object of its own.
type Agent struct {
	// Node is the object's name, Address where metrics are served.
	Node, Address string
	// PID is the agent's process.
	PID int

	lab  *Lab
	cmd  *exec.Cmd
	said bytes.Buffer
}

// Start starts an agent within the node's mount namespace, with more flags beside
// those that it needs, and returns when it has registered. Log records of the
// kernel that are there already it leaves out.
func (l *Lab) Start(ctx context.Context, flags ...string) (_ *Agent, err error) {
	seq, err := NextKmsg()
	if err != nil {
		return nil, err
	}
	a := &Agent{Node: fmt.Sprintf("bench-%08x", rand.Uint32()), lab: l}
	if a.Address, err = freeAddress(); err != nil {
		return nil, err
	}
	if err := l.createNode(ctx, a.Node); err != nil {
		return nil, err
	}
	argv := append([]string{
		l.agent(), "run", "--node-name", a.Node, "--kubeconfig", l.Cluster.Kubeconfig(), "--metrics-address", a.Address,
		"--state-dir", filepath.Join(l.Dir, a.Node), "--config", filepath.Join(l.Dir, "config.yaml"), "--kmsg-from-seq", fmt.Sprint(seq),
	}, flags...)
	// nsenter becomes the program: the pid stays.
	if a.cmd, err = l.Cluster.Enter(context.WithoutCancel(ctx), argv...); err != nil {
		return nil, errors.Join(err, a.removeNode())
	}
	a.cmd.Stdout, a.cmd.Stderr = &a.said, &a.said
	// A Ctrl-C is for the benchmark, which stops the agent itself.
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := a.cmd.Start(); err != nil {
		return nil, errors.Join(err, a.removeNode())
	}
	a.PID = a.cmd.Process.Pid
	if err := a.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, a.Stop())
	}
	return a, nil
}

// Stop ends the agent and removes its Node object.
func (a *Agent) Stop() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(15*time.Second, func() { _ = a.cmd.Process.Kill() })
	defer kill.Stop()
	err := a.cmd.Wait()
	if err != nil {
		err = fmt.Errorf("node-agent: %w; it said:\n%s", err, a.said.Bytes())
	}
	return errors.Join(err, a.removeNode(), os.RemoveAll(filepath.Join(a.lab.Dir, a.Node)))
}

func (a *Agent) removeNode() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return errors.Join(
		a.lab.Client.CoreV1().Nodes().Delete(ctx, a.Node, metav1.DeleteOptions{}),
		a.lab.Client.CoreV1().Events("default").DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{FieldSelector: "involvedObject.name=" + a.Node}),
	)
}

// awaitReady waits until the agent is registered and has written a condition: from
// then on what it finds is told at once.
func (a *Agent) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("it does not write its conditions"))
	defer cancel()
	for {
		if resp, err := http.Get("http://" + a.Address + "/readyz"); err == nil {
			_ = resp.Body.Close()
			node, err := a.lab.Client.CoreV1().Nodes().Get(ctx, a.Node, metav1.GetOptions{})
			if err == nil && resp.StatusCode == http.StatusOK && len(node.Status.Conditions) > 0 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node-agent does not become ready: %w; it said:\n%s", context.Cause(ctx), a.said.Bytes())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
