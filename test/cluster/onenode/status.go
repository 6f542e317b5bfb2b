package onenode

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// processes are the names of all processes that Up starts, in its order.
var processes = [...]string{
	"node", "journald", "etcd", "egress", "kube-apiserver", "containerd",
	"kube-controller-manager", "kube-scheduler", "kubelet",
}

// Status writes what runs, with pids and ports, and tells whether the cluster can
// be used: all its processes run and its node is Ready.
func (c *Cluster) Status(ctx context.Context, w io.Writer) (usable bool, err error) {
	ports := map[string]string{}
	for _, l := range listeners {
		ports[l.process] = strings.Trim(fmt.Sprint(l.ports), "[]")
	}
	usable = true
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "PROCESS\tPID\tPORTS")
	for _, name := range processes {
		p, ok := c.process(name)
		switch {
		case ok:
			fmt.Fprintf(tw, "%s\t%d\t%s\n", name, p.pid, ports[name])
		case name == "journald": // the machine's own serves as well
			fmt.Fprintf(tw, "%s\t-\t\n", name)
		default:
			fmt.Fprintf(tw, "%s\tdown\t\n", name)
			usable = false
		}
	}
	if err := tw.Flush(); err != nil {
		return false, err
	}
	if !usable {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := c.nodeReady(ctx); err != nil {
		_, err = fmt.Fprintf(w, "\nnode %s is not Ready: %v\n", NodeName, err)
		return false, err
	}
	_, err = fmt.Fprintf(w, "\nnode %s is Ready\nexport KUBECONFIG=%s\n", NodeName, c.Kubeconfig())
	return true, err
}
