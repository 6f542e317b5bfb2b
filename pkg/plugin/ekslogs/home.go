package ekslogs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
	"github.com/ekslogs/ekslogs/pkg/plugin/fetch"
	"github.com/ekslogs/ekslogs/pkg/plugin/term"
)

// bringHome downloads the node's bundle, verifies it and gives it its name; then it
// extracts it if that was asked for.
func (r *runner) bringHome(ctx context.Context, res *Result) (err error) {
	path := r.o.bundlePath(res.Node)
	file, err := fetch.Create(path, r.o.Clobber)
	if err != nil {
		return err
	}
	defer func() {
		if derr := file.Discard(); err == nil {
			err = derr
		}
	}()
	r.p.phase(res.Node, "downloading")
	name := res.Node + "-logs.tar.gz"
	d := fetch.Download{
		Client:   r.c.streams,
		URL:      r.c.bundleURL(res.Node, name),
		Progress: func(done, total int64) { r.p.bytes(res.Node, done, total) },
		Retrying: func(err error) {
			r.p.remark(res.Node, "the download goes on after: "+term.Clean(err.Error()))
		},
	}
	got, err := d.To(ctx, file.File)
	if err != nil {
		return explainDownload(err, res.Node)
	}
	d.URL = r.c.bundleURL(res.Node, name+".sha256")
	if err := r.compare(ctx, d, res.Node, got.SHA256); err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		if taken(err) {
			return existsHere(path)
		}
		return err
	}
	res.File, res.Bytes, res.SHA256 = path, got.Size, got.SHA256
	res.verified(got.Report)
	if r.o.Extract {
		r.p.phase(res.Node, "extracting")
		return r.extract(res)
	}
	return nil
}

// compare checks the hash against the one that lies beside the bundle, if there is
// one: it tells a whole bundle from another whole bundle.
func (r *runner) compare(ctx context.Context, d fetch.Download, node, sum string) error {
	b, err := d.Small(ctx, 4<<10)
	if err != nil {
		// The bundle itself has been verified; that is worth more than this.
		r.p.remark(node, "the checksum beside the bundle could not be read: "+term.Clean(err.Error()))
		return nil
	}
	said := string(bytes.TrimSpace(b))
	if i := strings.IndexAny(said, " \t"); i > 0 {
		said = said[:i]
	}
	if said == "" || strings.EqualFold(said, sum) {
		return nil
	}
	return &fetch.BundleError{Err: fmt.Errorf("its SHA-256 is %s, but the checksum beside it on the node says %s: "+
		"it was replaced while it was being read, or damaged on the way. Run it again to collect anew", sum, term.Clean(said))}
}

// extract unpacks the bundle beside itself. With --clobber the folder that was there
// goes only once the new one is whole.
func (r *runner) extract(res *Result) error {
	f, err := os.Open(res.File)
	if err != nil {
		return err
	}
	defer f.Close()
	folder := r.o.folderPath(res.Node)
	if !exists(folder) {
		err = extractInto(f, folder)
	} else {
		err = replaceFolder(f, folder)
	}
	if err != nil {
		return fmt.Errorf("%s is here and whole, but was not extracted: %s", res.File, term.Clean(err.Error()))
	}
	res.Folder = folder
	return nil
}

func extractInto(r io.Reader, folder string) error {
	_, err := bundle.Extract(r, folder, 0)
	return err
}

func replaceFolder(r io.Reader, folder string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(folder), ".ekslogs-*.partial")
	if err != nil {
		return err
	}
	fresh, old := filepath.Join(tmp, "new"), filepath.Join(tmp, "old")
	if err = extractInto(r, fresh); err == nil {
		err = os.Rename(folder, old)
	}
	if err == nil {
		if err = os.Rename(fresh, folder); err != nil {
			if back := os.Rename(old, folder); back != nil {
				return fmt.Errorf("%w; the folder that was there is now %s", err, old)
			}
		}
	}
	return errors.Join(err, os.RemoveAll(tmp))
}

// worthAnotherTry reports whether the bundle on the node may be good, and only the
// way home was not: the disk here, the network, or a kubelet that did not answer.
func worthAnotherTry(ctx context.Context, res *Result, err error) bool {
	var (
		broken *fetch.BundleError
		resp   *fetch.ResponseError
		denied *deniedError
	)
	switch {
	case ctx.Err() != nil, res.File != "", errors.As(err, &broken), errors.As(err, &denied):
		return false
	case errors.As(err, &resp):
		return resp.Code >= 500
	}
	return true
}
