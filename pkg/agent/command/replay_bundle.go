package command

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/host"
	"github.com/ekslogs/ekslogs/pkg/host/logtext"
)

func isBundle(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// bundleLog says what a file of a bundle holds.
type bundleLog struct {
	pattern string
	text    logtext.Options
	// dir is the folder of the bundle that holds what was under root on the node.
	dir, root string
}

// kernelLogs are the files that hold the kernel's log of the boot in which a bundle
// was made. They say the same; the first that is there is read.
var kernelLogs = []string{"kernel/journal.current-boot.log", "kernel/dmesg.human.current", "kernel/dmesg.current", "kernel/dmesg.boot"}

// bundleLogs are the other logs of a bundle that findings can be in.
var bundleLogs = []bundleLog{
	{pattern: "kernel/pstore/*"},
	{pattern: "kernel/pstore/systemd/*"},
	{pattern: "kernel/pstore/systemd/*/*"},
	{pattern: "kubelet/kubelet.log", text: logtext.Options{Source: host.SourceJournal, Unit: "kubelet"}},
	{pattern: "containerd/containerd-log.txt", text: logtext.Options{Source: host.SourceJournal, Unit: "containerd"}},
	{pattern: "gpu/fabricmanager.log", text: logtext.Options{Source: host.SourceJournal, Unit: "nvidia-fabricmanager"}},
	{pattern: "var_log/aws-routed-eni/*.log", dir: "var_log", root: "/var/log"},
	{pattern: "var_log/cron", dir: "var_log", root: "/var/log"},
	{pattern: "var_log/messages", dir: "var_log", root: "/var/log"},
	{pattern: "var_log/syslog", dir: "var_log", root: "/var/log"},
	{pattern: "var_log/kube-proxy.log", dir: "var_log", root: "/var/log"},
	{pattern: "var_log/kube-system_kube-proxy*/*/*.log", dir: "var_log", root: "/var/log/pods"},
}

// optionsOf returns how a file of a bundle is to be read, given which kernel's log of
// it counts.
func optionsOf(name, kernelLog string) (logtext.Options, bool) {
	if name == kernelLog {
		return logtext.Options{}, true
	}
	for _, l := range bundleLogs {
		if ok, _ := path.Match(l.pattern, name); !ok {
			continue
		}
		if l.root != "" {
			return logtext.Options{Source: host.SourceFile, Path: l.root + strings.TrimPrefix(name, l.dir)}, true
		}
		return l.text, true
	}
	return logtext.Options{}, false
}

// bundle replays the logs of a bundle, each by itself.
func (o *replayOptions) bundle(ctx context.Context, name string) error {
	present := map[string]bool{}
	err := eachFile(name, func(file string, _ io.Reader) error {
		present[file] = true
		return nil
	})
	if err != nil {
		return err
	}
	kernelLog := ""
	for _, k := range kernelLogs {
		if present[k] {
			kernelLog = k
			break
		}
	}
	print := o.printer()
	read := 0
	err = eachFile(name, func(file string, in io.Reader) error {
		text, ok := optionsOf(file, kernelLog)
		if !ok {
			return nil
		}
		read++
		p, err := o.pipeline()
		if err != nil {
			return err
		}
		print.file = file
		return replay(ctx, in, text, p, print)
	})
	if err == nil && read == 0 {
		return fmt.Errorf("%s holds no log that can be replayed: is it a bundle of node-agent or eks-log-collector?", name)
	}
	return err
}

// eachFile calls f for each regular file of an archive, with its name below the
// archive's root.
func eachFile(archive string, f func(name string, content io.Reader) error) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s is no bundle: %w", archive, err)
	}
	tr := tar.NewReader(unzipped)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s is damaged; fetch it again: %w", archive, err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := f(strings.TrimPrefix(path.Clean("/"+h.Name), "/"), tr); err != nil {
			return err
		}
	}
}
