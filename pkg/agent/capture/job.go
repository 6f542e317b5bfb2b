package capture

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/agent/capture/child"
	"github.com/ekslogs/ekslogs/pkg/agent/capture/upload"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// childMemory is the soft limit of the capturing process's heap.
const childMemory = "GOMEMLIMIT=40MiB"

// job makes bundles, one at a time.
type job struct {
	host     *host.Host
	node     string
	version  string
	stateDir string
	timeout  time.Duration
	command  []string
	env      []string
	facts    func(context.Context) []extra
	findings func() []byte
	uploader upload.Uploader
	log      *slog.Logger

	// hanging counts capturing processes that could not be killed and are there
	// still; abandoned counts all that there have ever been.
	hanging, abandoned atomic.Int64
}

// run makes the bundle that nd asks for and takes it where nd says. It returns a
// reason and a message for the status, and is ended by ctx.
func (j *job) run(ctx context.Context, nd *v1alpha1.NodeDiagnostic) (reason, message string) {
	ctx, cancel := context.WithTimeoutCause(ctx, j.timeout, fmt.Errorf("a capture may take %s", j.timeout))
	defer cancel()
	res, where, err := j.bundle(ctx, nd)
	if err != nil {
		return v1alpha1.ReasonFailure, clip(err.Error())
	}
	reason = v1alpha1.ReasonSuccess
	if res.Failed > 0 {
		reason = v1alpha1.ReasonSuccessWithErrors
	}
	return reason, clip(summary(res) + ", " + where)
}

// bundle makes the bundle, and says where it is.
func (j *job) bundle(ctx context.Context, nd *v1alpha1.NodeDiagnostic) (res *result, where string, err error) {
	name, dest := BundleName(j.node), nd.Spec.LogCapture.Destination
	if n := j.hanging.Load(); n > 0 {
		return nil, "", fmt.Errorf("%d earlier capture process hangs in the kernel and cannot be killed: another is not started beside it; the node needs a reboot", n)
	}
	dir := SupportDir
	if dest != v1alpha1.DestinationNode {
		dir = path.Join(j.stateDir, uploadsDir)
	}
	folder, err := openFolder(j.host, dir, true)
	if err != nil {
		return nil, "", err
	}
	defer folder.Close()
	if dest == v1alpha1.DestinationNode {
		res, err := j.collect(ctx, nd, folder, dir, j.timeout-j.timeout/50)
		return res, path.Join(dir, name) + " on the node", err
	}
	defer func() { err = errors.Join(err, discard(folder, name)) }()
	// A third of the time is kept for the way to the destination.
	res, err = j.collect(ctx, nd, folder, dir, j.timeout*2/3)
	if err != nil {
		return nil, "", err
	}
	f, err := folder.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	if err := j.uploader.Put(ctx, dest, fdPath(f)); err != nil {
		return nil, "", fmt.Errorf("the bundle was made (%s) but could not be delivered: %w", size(res.Bytes), err)
	}
	return res, "sent to " + upload.Redact(dest), nil
}

// collect has a process of its own put the bundle into folder, which is dir on the
// host.
func (j *job) collect(ctx context.Context, nd *v1alpha1.NodeDiagnostic, folder *os.Root, dir string, timeout time.Duration) (*result, error) {
	// The folder's name without symbolic links. Collect refuses one that is planted
	// in its place from here on.
	real, err := realPath(folder)
	if err != nil {
		return nil, err
	}
	req := request{
		Root: j.host.Root(), Node: j.node, Version: j.version,
		Output:     path.Join(real, BundleName(j.node)),
		Categories: nd.Spec.LogCapture.Categories, Since: since(nd, j.log), Timeout: timeout,
		Extra: j.facts(ctx),
	}
	if j.findings != nil {
		req.Findings = j.findings()
	}
	stdin, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	var last report
	err = child.Run(ctx, child.Spec{
		Path: j.command[0], Args: j.command[1:], Env: j.env, Stdin: stdin,
		OnLine:  func(line []byte) { last = j.heard(line, last) },
		Stderr:  os.Stderr,
		OnStart: func(pid int) { j.log.Info("capturing", "pid", pid, "destination", dir) },
		OnGone:  func() { j.hanging.Add(-1) },
	})
	if errors.Is(err, child.ErrAbandoned) {
		j.hanging.Add(1)
		j.abandoned.Add(1)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the capture process %w (last item: %s)", err, cmp.Or(last.Progress, "none"))
	case last.Error != "":
		return nil, errors.New(strings.ReplaceAll(last.Error, real, dir))
	case last.Result == nil:
		return nil, errors.New("the capture process ended without a result; the agent's log has its words")
	}
	return last.Result, nil
}

// heard returns the report of a line, or the one before when it is none.
func (j *job) heard(line []byte, before report) report {
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		j.log.Warn("the capture process wrote something else than a report", "err", err)
		return before
	}
	j.log.Debug("capture", "done", r.Progress)
	return r
}
