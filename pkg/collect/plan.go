package collect

import (
	"cmp"
	"context"
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
	// Bytes is the estimated size: what a file has now, at most the bound. -1 means
	// that only collecting it would tell.
	Bytes int64
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

func (e *env) plan(ctx context.Context, n entry) []PlanItem {
	it := PlanItem{Path: safePath(n.path), Category: string(n.category), Source: n.kind, Bytes: -1, Limit: cmp.Or(n.bytes, defaultBytes)}
	if n.on != nil && !n.on.ok(e) {
		it.Absent = "only on " + n.on.name
		return []PlanItem{it}
	}
	if n.expand != nil {
		if n.acts {
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
	it.Source = n.src.kind()
	e.describe(&it, n.src)
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
			it.Absent = ""
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
		info, err := f.Stat()
		_ = f.Close()
		if err != nil {
			continue
		}
		it.Absent, it.From = "", strings.TrimSpace(it.From+" "+p)
		if info.Size() > 0 {
			it.Bytes = min(it.Limit, max(it.Bytes, 0)+info.Size())
		}
		if !s.all {
			return
		}
	}
}
