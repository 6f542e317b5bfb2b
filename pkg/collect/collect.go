// Package collect makes a node's log bundle: what is collected is a table, how is
// a bounded runner, and the result is one archive with a manifest that says for
// every entry of the table what became of it. All text is redacted before it
// touches the disk.
package collect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
	"github.com/ekslogs/ekslogs/pkg/collect/redact"
)

// Collect makes the bundle opts.Output. It returns an error only when there is no
// bundle: then nothing of it is left, and an older bundle is as it was. What
// could not be collected is in Result.Errors and in the bundle. When ctx ends,
// the capture is given up and the error is the context's.
func Collect(ctx context.Context, opts Options) (Result, error) {
	return collectTable(ctx, opts, fullTable())
}

// collectTable is Collect for a table.
func collectTable(ctx context.Context, opts Options, table []entry) (res Result, err error) {
	if err := opts.normalize(); err != nil {
		return Result{}, err
	}
	findings := opts.Findings
	if findings == nil {
		findings = []byte("{}\n")
	}
	if !json.Valid(findings) {
		return Result{}, errors.New("collect: Options.Findings is not JSON")
	}
	t, err := openTarget(opts.Output)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, t.dir.Close()) }()
	if err := t.sweep(); err != nil {
		return Result{}, fmt.Errorf("files of an earlier capture: %w", err)
	}
	table = append(selectEntries(table, &opts), extraEntries(&opts)...)
	return collectInto(ctx, &opts, t, table, findings)
}

func collectInto(ctx context.Context, opts *Options, t *target, table []entry, findings []byte) (Result, error) {
	start := time.Now()
	arch, err := newArchive(t, start)
	if err != nil {
		return Result{}, err
	}
	sp := newSpace(t.dir, filepath.Dir(opts.Output))
	if err := sp.begin(); err != nil {
		return Result{}, errors.Join(err, arch.abort())
	}
	e := newEnv(ctx, opts)
	a := newAssembler(arch, opts, e, start)
	a.space = sp
	red := redact.New()
	abandoned := a.collect(ctx, opts, e, table, red)
	cleanup := e.litter.remove()
	if err := ctx.Err(); err != nil {
		return Result{}, errors.Join(context.Cause(ctx), arch.abort())
	}
	if a.err != nil {
		return Result{}, errors.Join(a.err, arch.abort())
	}
	a.manifest.FinishedAt = time.Now().UTC().Truncate(time.Millisecond)
	a.manifest.Abandoned = abandoned
	// Findings hold evidence: lines of logs.
	text, _ := red.String(string(findings))
	sum, size, err := a.finish([]byte(text))
	if err != nil {
		return Result{}, errors.Join(err, arch.abort())
	}
	res := a.result()
	if cleanup != nil {
		res.Errors = append(res.Errors, fmt.Sprintf("temporary files on the host: %v", cleanup))
	}
	res.Path, res.SHA256, res.Bytes, res.Duration = opts.Output, sum, size, time.Since(start)
	return res, nil
}

func newAssembler(arch *archive, opts *Options, e *env, start time.Time) *assembler {
	a := &assembler{archive: arch, names: map[string]bool{}, left: &atomic.Int64{}}
	a.left.Store(max(1, opts.MaxBytes-rootReserve))
	for _, own := range []string{bundle.ManifestName, bundle.IndexName, bundle.ErrorsName, bundle.LegacyErrorsName, bundle.FindingsName, bundle.SummaryName} {
		a.names[own] = true
	}
	a.manifest = bundle.Manifest{
		SchemaVersion: bundle.SchemaVersion, AgentVersion: opts.AgentVersion, Node: e.node,
		Kernel: hostFact(e.host, "/proc/sys/kernel/osrelease"), BootID: hostFact(e.host, "/proc/sys/kernel/random/boot_id"),
		Platform: e.platform.Names(), StartedAt: start.UTC().Truncate(time.Millisecond),
	}
	for _, c := range opts.Categories {
		a.manifest.Categories = append(a.manifest.Categories, string(c))
	}
	return a
}

// collect runs the table and takes its items. It returns how many sources were
// abandoned.
func (a *assembler) collect(ctx context.Context, opts *Options, e *env, table []entry, red *redact.Redactor) int {
	ctx, cancel := context.WithTimeoutCause(ctx, opts.Timeout, fmt.Errorf("%w (%s)", errTotalTime, opts.Timeout))
	defer cancel()
	results := make(chan result)
	r := &runner{env: e, red: red, space: a.space, target: a.archive.target, results: results, left: a.left, grace: hangGrace}
	go func() {
		r.run(ctx, table)
		close(results)
	}()
	done := 0
	for res := range results {
		if res.done == "" {
			a.take(res)
			if a.err != nil {
				cancel()
			}
			continue
		}
		done++
		if opts.Progress != nil {
			opts.Progress(Progress{Done: done, Total: len(table), Path: res.done, Bytes: a.bytes})
		}
	}
	return int(r.abandoned.Load())
}

// selectEntries keeps the entries of the categories that were asked for.
func selectEntries(table []entry, opts *Options) []entry {
	return slices.DeleteFunc(table, func(n entry) bool { return !slices.Contains(opts.Categories, n.category) })
}

func extraEntries(opts *Options) []entry {
	var out []entry
	for _, x := range opts.Extra {
		if slices.Contains(opts.Categories, x.Category) {
			out = append(out, entry{path: x.Path, category: x.Category, src: extraSource{x.Open}, lane: laneNetwork, timeout: 30 * time.Second})
		}
	}
	return out
}
