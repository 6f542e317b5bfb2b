package bundle

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const (
	// maxManifest bounds manifest.json, which is read into memory.
	maxManifest = 64 << 20
	// maxEntries bounds the names that are kept in memory.
	maxEntries = 1 << 20
)

// ErrCorrupt is the cause of every error that says that a bundle is not whole or
// not what its manifest says. An error of the reader itself does not have it.
var ErrCorrupt = errors.New("the bundle is damaged")

// Report is what reading a bundle through has found.
type Report struct {
	// Manifest is nil for a bundle that another agent made.
	Manifest *Manifest
	// Entries counts the regular files in the archive, Bytes their sizes together.
	Entries int
	Bytes   int64
	// Special counts entries that are neither files nor folders, such as symbolic
	// links. A bundle with a manifest has none.
	Special int
}

// Verify reads a .tar.gz to its end, once, and checks the gzip checksum, the
// archive's structure, that no name is unsafe or there twice, and every entry's
// hash against the manifest. A bundle without a manifest is read through all the
// same; its Report has a nil Manifest. Memory does not depend on the size.
func Verify(r io.Reader) (*Report, error) {
	return read(r, func(*tar.Header, string, io.Reader) error { return nil })
}

// visit is called for each folder (nil reader) and regular file. What it leaves
// unread is read for it.
type visit func(h *tar.Header, name string, content io.Reader) error

func read(r io.Reader, f visit) (*Report, error) {
	src := &sourceReader{r: r}
	// A bufio.Reader, so that gzip does not add one: the rest is checked below.
	zr, err := gzip.NewReader(bufio.NewReaderSize(src, 256<<10))
	if err != nil {
		return nil, src.explain("gzip header", err)
	}
	s := scan{report: &Report{}, sums: map[string]string{}, visit: f}
	tr := tar.NewReader(zr)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, src.explain("archive", err)
		}
		if err := s.entry(h, tr, src); err != nil {
			return nil, err
		}
	}
	// Only the end of the gzip stream has its checksum.
	if err := drainPadding(zr); err != nil {
		return nil, src.explain("end of the archive", err)
	}
	if err := zr.Close(); err != nil {
		return nil, src.explain("gzip", err)
	}
	if s.manifest != nil {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	return s.report, nil
}

type scan struct {
	report   *Report
	sums     map[string]string // name → SHA-256 in hex, "" for a folder
	manifest []byte
	visit    visit
}

func (s *scan) entry(h *tar.Header, tr *tar.Reader, src *sourceReader) error {
	name, err := cleanName(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		return nil
	}
	if s.manifest != nil {
		return corrupt("%q follows %s, which must be the last entry", name, ManifestName)
	}
	if sum, ok := s.sums[name]; ok && (h.Typeflag != tar.TypeDir || sum != "") {
		return corrupt("%q is in the archive twice", name)
	}
	if len(s.sums) >= maxEntries {
		return corrupt("more than %d entries", maxEntries)
	}
	s.sums[name] = ""
	switch h.Typeflag {
	case tar.TypeDir:
		return s.visit(h, name, nil)
	case tar.TypeReg:
	default:
		s.report.Special++
		return s.visit(h, name, nil)
	}
	sum := sha256.New()
	tee := &countingReader{r: io.TeeReader(tr, sum)}
	if name == ManifestName {
		if h.Size > maxManifest {
			return corrupt("%s has %d bytes, more than %d", ManifestName, h.Size, maxManifest)
		}
		if s.manifest, err = io.ReadAll(tee); err != nil {
			return src.explain(name, err)
		}
		if err := s.visit(h, name, newBytesReader(s.manifest)); err != nil {
			return err
		}
	} else {
		if err := s.visit(h, name, tee); err != nil {
			if tee.err != nil && !errors.Is(tee.err, io.EOF) {
				return src.explain(name, tee.err)
			}
			return err
		}
		if _, err := io.Copy(io.Discard, tee); err != nil {
			return src.explain(name, err)
		}
	}
	s.report.Entries++
	s.report.Bytes += tee.n
	s.sums[name] = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// check compares what was read with the manifest.
func (s *scan) check() error {
	m := &Manifest{}
	if err := json.Unmarshal(s.manifest, m); err != nil {
		return corrupt("%s: %v", ManifestName, err)
	}
	if m.SchemaVersion > SchemaVersion {
		return fmt.Errorf("%s has schema version %d, this program knows %d: use a newer one", ManifestName, m.SchemaVersion, SchemaVersion)
	}
	if m.SchemaVersion < 1 {
		return corrupt("%s has no schemaVersion", ManifestName)
	}
	if s.report.Special > 0 {
		return corrupt("%d entries are neither files nor folders", s.report.Special)
	}
	left := make(map[string]string, len(s.sums))
	for name, sum := range s.sums {
		if sum != "" && name != ManifestName {
			left[name] = sum
		}
	}
	for i := range m.Items {
		it := &m.Items[i]
		if it.SHA256 == "" {
			continue
		}
		sum, ok := left[it.Path]
		if !ok {
			return corrupt("%q is in the manifest and not in the archive", it.Path)
		}
		if sum != it.SHA256 {
			return corrupt("%q: its SHA-256 is %s, the manifest says %s", it.Path, sum, it.SHA256)
		}
		delete(left, it.Path)
	}
	for name := range left {
		return corrupt("%q is in the archive and not in the manifest", name)
	}
	s.report.Manifest = m
	return nil
}
