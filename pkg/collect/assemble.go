package collect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// rootReserve is kept of the bundle's bound for the files about the bundle.
const rootReserve = 1 << 20

// assembler puts items into the archive, in the order in which they come. It is
// for one goroutine.
type assembler struct {
	archive  *archive
	space    *space
	manifest bundle.Manifest
	names    map[string]bool
	left     *atomic.Int64
	bytes    int64
	// err is the first error of the archive itself: there will be no bundle.
	err error
}

// take adds an item and its content.
func (a *assembler) take(res result) {
	it := res.item
	if res.spool != nil {
		defer res.spool.discard()
	}
	if a.err != nil {
		return
	}
	it.Path = a.unique(it.Path)
	if res.spool != nil {
		if err := a.storeSpool(&it, res.spool); err != nil {
			it.Status, it.Truncated, it.Error = bundle.StatusFailed, false, err.Error()
		}
	}
	a.manifest.Items = append(a.manifest.Items, it)
	for kind, n := range it.Redactions {
		if a.manifest.Redactions == nil {
			a.manifest.Redactions = map[string]int{}
		}
		a.manifest.Redactions[kind] += n
	}
}

// storeSpool stores an item if the bundle and the disk have room for it.
func (a *assembler) storeSpool(it *bundle.Item, s *spool) error {
	size := s.size()
	if size > a.left.Load() {
		return errBudget
	}
	release, err := a.space.reserve(size)
	if err != nil {
		return err
	}
	defer release()
	a.store(it, size, s.reader())
	return nil
}

func (a *assembler) store(it *bundle.Item, size int64, content io.Reader) {
	sum, err := a.archive.add(it.Path, size, content)
	if err != nil {
		a.err = fmt.Errorf("archive: %w", err)
		return
	}
	it.Bytes, it.SHA256 = size, sum
	a.bytes += size
	a.left.Add(-size)
}

// unique keeps two sources from having one name: an archive with a name twice
// extracts to one file.
func (a *assembler) unique(path string) string {
	name := path
	for i := 2; a.names[name]; i++ {
		name = fmt.Sprintf("%s~%d", path, i)
	}
	a.names[name] = true
	return name
}

// own adds a file about the bundle itself.
func (a *assembler) own(path string, content []byte) {
	if a.err != nil {
		return
	}
	it := bundle.Item{Path: path, Source: bundle.SourceAgent, Status: bundle.StatusOK}
	if len(content) == 0 {
		it.Status = bundle.StatusEmpty
	}
	a.store(&it, int64(len(content)), bytes.NewReader(content))
	a.manifest.Items = append(a.manifest.Items, it)
}

// finish adds the files at the root, the manifest last, and places the bundle.
func (a *assembler) finish(findings []byte) (sum string, size int64, err error) {
	m := &a.manifest
	slices.SortFunc(m.Items, func(x, y bundle.Item) int { return bytes.Compare([]byte(x.Path), []byte(y.Path)) })
	index, problems, summary := indexText(m), errorsText(m), summaryText(m, findings)
	a.own(bundle.IndexName, index)
	a.own(bundle.ErrorsName, problems)
	a.own(bundle.LegacyErrorsName, problems)
	a.own(bundle.FindingsName, findings)
	a.own(bundle.SummaryName, summary)
	if a.err == nil {
		var text []byte
		if text, a.err = json.MarshalIndent(m, "", " "); a.err == nil {
			_, a.err = a.archive.add(bundle.ManifestName, int64(len(text)), bytes.NewReader(text))
		}
	}
	if a.err != nil {
		return "", 0, a.err
	}
	return a.archive.finish()
}

// result counts the items, but for the files about the bundle itself.
func (a *assembler) result() Result {
	var res Result
	for _, it := range a.manifest.Items {
		if it.Source == bundle.SourceAgent {
			continue
		}
		switch it.Status {
		case bundle.StatusOK:
			res.OK++
		case bundle.StatusAbsent:
			res.Absent++
		case bundle.StatusEmpty:
			res.Empty++
		case bundle.StatusFailed:
			res.Failed++
			res.Errors = append(res.Errors, it.Path+": "+brief(&it))
		}
		if it.Truncated {
			res.Truncated++
		}
	}
	res.Abandoned = a.manifest.Abandoned
	return res
}

func sortedKeys(m map[string]int) []string { return slices.Sorted(maps.Keys(m)) }
