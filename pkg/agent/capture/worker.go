package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ekslogs/ekslogs/api/v1alpha1"
	"github.com/ekslogs/ekslogs/pkg/agent/capture/child"
	"github.com/ekslogs/ekslogs/pkg/collect"
	"github.com/ekslogs/ekslogs/pkg/host"
)

// maxRequest bounds what the worker reads: a Node and its Events are far less.
const maxRequest = 64 << 20

// Work is the other side of the capture: it runs in the process of its own that the
// agent has started, reads the request from in and writes reports to out. What goes
// wrong is reported there; the error is of the conversation itself.
func Work(ctx context.Context, in io.Reader, out, errOut io.Writer) error {
	if err := child.Quieten(); err != nil {
		fmt.Fprintln(errOut, "node-agent capture: runs louder than it should:", err)
	}
	var req request
	if err := json.NewDecoder(io.LimitReader(in, maxRequest)).Decode(&req); err != nil {
		return fmt.Errorf("read the request; this command is for the agent's own use: %w", err)
	}
	enc := json.NewEncoder(out)
	res, err := work(ctx, req, enc)
	if err != nil {
		return enc.Encode(report{Error: err.Error()})
	}
	return enc.Encode(report{Result: res})
}

// progressEvery keeps the agent from being woken for every item.
const progressEvery = 250 * time.Millisecond

func work(ctx context.Context, req request, enc *json.Encoder) (*result, error) {
	h, err := host.New(req.Root)
	if err != nil {
		return nil, err
	}
	opts := collect.Options{
		Host: h, Node: req.Node, AgentVersion: req.Version, Output: req.Output,
		Categories: req.Categories, Since: req.Since, Timeout: req.Timeout, Findings: req.Findings,
	}
	for _, e := range req.Extra {
		opts.Extra = append(opts.Extra, collect.ExtraFile{Path: e.Path, Category: v1alpha1.LogCategoryBase, Open: e.open})
	}
	var last time.Time
	opts.Progress = func(p collect.Progress) {
		if now := time.Now(); now.Sub(last) >= progressEvery {
			last = now
			_ = enc.Encode(report{Progress: p.Path})
		}
	}
	res, err := collect.Collect(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &result{
		Bytes: res.Bytes, SHA256: res.SHA256, Duration: res.Duration,
		OK: res.OK, Absent: res.Absent, Empty: res.Empty, Failed: res.Failed,
		Truncated: res.Truncated, Abandoned: res.Abandoned,
		FirstErrors: res.Errors[:min(len(res.Errors), 3)],
	}, nil
}

func (e extra) open() (io.ReadCloser, error) {
	if e.Err != "" {
		return nil, errors.New(e.Err)
	}
	return io.NopCloser(bytes.NewReader(e.Data)), nil
}
