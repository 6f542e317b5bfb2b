// Command allinone is one multi-call binary that holds etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubelet and kubectl. It runs the
// component named by argv[0], a symbolic link, or, when it is called by its own
// name, by its first argument.
//
// It is a module of its own, so that who uses the main module never downloads
// k8s.io/kubernetes. One binary instead of six is linked in a fraction of the time
// and takes a fraction of the disk.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args[1:]
	if name == "allinone" && len(args) > 0 {
		name, args = args[0], args[1:]
		os.Args = append([]string{name}, args...)
	}
	os.Exit(run(name, args))
}

// run runs the component until it ends and returns its exit code. The components
// other than etcd read os.Args.
func run(name string, args []string) int {
	switch name {
	case "etcd":
		if err := runEtcd(args); err != nil {
			fmt.Fprintln(os.Stderr, "etcd:", err)
			return 1
		}
		return 0
	case "kubectl":
		cmd := kubectl.NewDefaultKubectlCommand()
		if err := cli.RunNoErrOutput(cmd); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	cmd := command(name)
	if cmd == nil {
		fmt.Fprintf(os.Stderr, "allinone: unknown component %q: call it as etcd, kube-apiserver, "+
			"kube-controller-manager, kube-scheduler, kubelet or kubectl\n", name)
		return 2
	}
	return cli.Run(cmd)
}

func command(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	}
	return nil
}
