package onenode

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// components are the names under which allinone is called.
var components = [...]string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"}

// Build builds the cluster's programs, which needs no root.
func (c *Cluster) Build(ctx context.Context, progress io.Writer) error {
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return c.build(ctx, sayTo(progress))
}

// build builds the cluster's programs into bin. A stamp of the sources spares a
// second build the minute that the go tool needs to find nothing to do.
func (c *Cluster) build(ctx context.Context, say func(string, ...any)) error {
	if err := os.MkdirAll(c.Bin(""), 0o755); err != nil {
		return err
	}
	stamp, err := c.sourceStamp()
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(c.Bin("stamp")); err == nil && string(old) == stamp {
		return nil
	}
	version, err := c.kubernetesVersion()
	if err != nil {
		return err
	}
	helper := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", c.Bin("helper"), "./test/cluster/helper")
	if err := c.goBuild(helper, func() {}); err != nil {
		return err
	}
	say("building Kubernetes %s from source: 5 to 8 minutes on two cores the first time", version)
	allinone := exec.CommandContext(ctx, "go", "build", "-C", "test/cluster/allinone", "-mod=readonly", "-buildvcs=false", "-trimpath",
		"-gcflags=all=-dwarf=false", // no debug data at all: a third of the time and of the cache
		"-ldflags=-s -w "+versionFlags(version), "-o", c.Bin("allinone"), ".")
	start := time.Now()
	if err := c.goBuild(allinone, func() { say("still building, %s so far", time.Since(start).Round(time.Second)) }); err != nil {
		return err
	}
	for _, name := range components {
		if err := os.Symlink("allinone", c.Bin(name)); err != nil && !os.IsExist(err) {
			return err
		}
	}
	return os.WriteFile(c.Bin("stamp"), []byte(stamp), 0o644)
}

// goBuild runs a go command in the source tree and calls tick every 30 s meanwhile.
func (c *Cluster) goBuild(cmd *exec.Cmd, tick func()) error {
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.Repo, &out, &out
	// Static, so that the helper runs in an image of its own.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticker := time.NewTicker(30 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out.Bytes())
			}
			return nil
		case <-ticker.C:
			tick()
		}
	}
}

// sourceStamp names the toolchain and the content of what is built.
func (c *Cluster) sourceStamp() (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.Version())
	for _, pattern := range []string{"allinone/go.*", "allinone/*.go", "helper/*.go", "onenode/build.go"} {
		files, err := filepath.Glob(filepath.Join(c.Repo, "test/cluster", pattern))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := os.Open(file)
			if err != nil {
				return "", err
			}
			_, err = io.Copy(sum, f)
			f.Close()
			if err != nil {
				return "", err
			}
		}
	}
	return fmt.Sprintf("%x\n", sum.Sum(nil)), nil
}

// kubernetesVersion reads the version, such as v1.34.4, from allinone's go.mod.
func (c *Cluster) kubernetesVersion() (string, error) {
	b, err := os.ReadFile(filepath.Join(c.Repo, "test/cluster/allinone/go.mod"))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v\S+)`).FindSubmatch(b)
	if m == nil {
		return "", fmt.Errorf("test/cluster/allinone/go.mod requires no k8s.io/kubernetes")
	}
	return string(m[1]), nil
}

// versionFlags sets what the components report as their version: without it they
// call themselves v0.0.0 and the API server refuses some of their requests.
func versionFlags(version string) string {
	minor := strings.Split(version, ".")[1]
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, kv := range []string{"gitVersion=" + version, "gitMajor=1", "gitMinor=" + minor, "gitTreeState=clean", "gitCommit=module"} {
			flags = append(flags, "-X "+pkg+"."+kv)
		}
	}
	return strings.Join(flags, " ")
}
