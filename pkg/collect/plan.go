package collect

import (
	"cmp"
	"context"
	"io"
	"os"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// PlanItem is a row of the table as it would be collected from a host.
type PlanItem struct {
	// Path and Category are those of the item in the bundle.
	Path, Category string
	// Source is the kind of source, From the file, command line or URL.
	Source bundle.Source
	From   string
	// Bytes is the estimated size: what a file has now, at most the bound.
	Bytes int64
	// Rough says that Bytes is what such a source commonly gives: only running it
	// would tell.
	Rough bool
	// Limit is the bound, in bytes, of what is kept.
	Limit int64
	// Absent says why the host does not have it; empty if it does, or may.
	Absent string
}

// Plan says what Collect would collect, without collecting it. Of Options only
// Host, Categories and Since count.
func Plan(ctx context.Context, opts Options) ([]PlanItem, error) {
	if opts.Output == "" {
		opts.Output = "plan.tar.gz"
	}
	if err := opts.normalize(); err != nil {
		return nil, err
	}
	e := newEnv(ctx, &opts)
	var out []PlanItem
	for _, n := range append(selectEntries(fullTable(), &opts), extraEntries(&opts)...) {
		out = append(out, e.plan(ctx, n)...)
	}
	return out, nil
}

// roughBytes is what a kind of source commonly gives on a node.
func roughBytes(kind bundle.Source) int64 {
	switch kind {
	case bundle.SourceJournal:
		return 1 << 20
	case bundle.SourceHTTP, bundle.SourceAPI:
		return 16 << 10
	}
	return 8 << 10
}

func (e *env) plan(ctx context.Context, n entry) []PlanItem {
	it := PlanItem{Path: safePath(n.path), Category: string(n.category), Source: n.kind, Limit: cmp.Or(n.bytes, defaultBytes)}
	if n.src != nil {
		it.Source = n.src.kind()
	}
	if n.on != nil && !n.on.ok(e) {
		it.Absent = "only on " + n.on.name
		return []PlanItem{it}
	}
	if n.expand != nil {
		if n.acts {
			it.Bytes, it.Rough = roughBytes(it.Source), true
			return []PlanItem{it}
		}
		more, err := n.expand(ctx, e)
		if err != nil && len(more) == 0 {
			it.Absent = err.Error()
			return []PlanItem{it}
		}
		var out []PlanItem
		for _, m := range more {
			out = append(out, e.plan(ctx, n.heir(m))...)
		}
		return out
	}
	e.describe(&it, n.src)
	if it.Bytes == 0 && it.Absent == "" && it.Source != bundle.SourceFile {
		it.Bytes, it.Rough = roughBytes(it.Source), true
	}
	return []PlanItem{it}
}

// describe fills in what a source is and how much it has.
func (e *env) describe(it *PlanItem, s source) {
	switch s := s.(type) {
	case commandSource:
		argv, err := s.choose(e)
		if err != nil {
			it.Absent = err.Error()
		}
		it.From = strings.Join(argv, " ")
	case planSource:
		it.From = "several commands"
	case fileSource:
		e.describeFile(it, s)
	case httpSource:
		it.From = s.url
	case funcSource:
		it.From = s.what
		if s.live && !e.live {
			it.Absent = "the root is a copy of files, not a running host"
		}
	case firstSource:
		for _, alternative := range s {
			it.Absent, it.Source = "", alternative.kind()
			if e.describe(it, alternative); it.Absent == "" {
				return
			}
		}
	}
}

func (e *env) describeFile(it *PlanItem, s fileSource) {
	it.Absent = "no such file"
	for _, p := range s.paths(e) {
		f, err := e.openRegular(p)
		if err != nil {
			continue
		}
		size, err := measure(f, it.Limit)
		_ = f.Close()
		if err != nil {
			continue
		}
		it.Absent, it.From = "", strings.TrimSpace(it.From+" "+p)
		it.Bytes = min(it.Limit, it.Bytes+size)
		if !s.all {
			return
		}
	}
}

// measure returns the size of a file; those of /proc tell it only by being read.
func measure(f *os.File, limit int64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() > 0 {
		return info.Size(), nil
	}
	return io.Copy(io.Discard, io.LimitReader(f, min(limit, 1<<20)))
}
