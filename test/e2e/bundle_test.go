//go:build e2e

package e2e

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/ekslogs/ekslogs/pkg/collect/bundle"
)

// readBundle reads a bundle without our own reader: the manifest, and the SHA-256
// of each file by the name that it has in the archive below its top folder.
func readBundle(t *testing.T, path string) (bundle.Manifest, map[string]string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		t.Fatalf("%s is no gzip: %v", path, err)
	}
	var manifest bundle.Manifest
	sums := map[string]string{}
	for tr := tar.NewReader(gz); ; {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		name := strings.TrimPrefix(header.Name, "./")
		sum := sha256.New()
		var content strings.Builder
		w := io.Writer(sum)
		if name == bundle.ManifestName {
			w = io.MultiWriter(sum, &content)
		}
		if _, err := io.Copy(w, tr); err != nil {
			t.Fatalf("%s: %s: %v", path, name, err)
		}
		sums[name] = fmt.Sprintf("%x", sum.Sum(nil))
		if name == bundle.ManifestName {
			if err := json.Unmarshal([]byte(content.String()), &manifest); err != nil {
				t.Fatalf("%s: %s: %v", path, name, err)
			}
		}
	}
	if manifest.SchemaVersion == 0 {
		t.Fatalf("%s has no %s", path, bundle.ManifestName)
	}
	return manifest, sums
}

// checkBundle checks a bundle of the test node: each hash of its manifest, that
// every item ended in a way that is explained, and what must be there.
func checkBundle(t *testing.T, path string) bundle.Manifest {
	t.Helper()
	manifest, sums := readBundle(t, path)
	if manifest.Node != node {
		t.Errorf("the bundle is of node %q, want %q", manifest.Node, node)
	}
	status := map[string]bundle.Status{}
	for _, item := range manifest.Items {
		status[item.Path] = item.Status
		switch item.Status {
		case bundle.StatusOK, bundle.StatusEmpty, bundle.StatusAbsent:
		case bundle.StatusFailed:
			if item.Error == "" {
				t.Errorf("%s failed without a reason", item.Path)
			}
		default:
			t.Errorf("%s has the status %q", item.Path, item.Status)
		}
		if item.SHA256 == "" {
			continue
		}
		if sums[item.Path] != item.SHA256 {
			t.Errorf("%s: sha256 in the manifest %s, in the archive %s", item.Path, item.SHA256, sums[item.Path])
		}
	}
	for _, want := range wantOK(t) {
		if status[want] != bundle.StatusOK {
			t.Errorf("%s is %q, want ok", want, status[want])
		}
	}
	return manifest
}

// wantOK are the paths that have to be there from the test node, in testdata.
func wantOK(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/want-ok.txt")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			paths = append(paths, line)
		}
	}
	if len(paths) < 60 {
		t.Fatalf("testdata/want-ok.txt names %d paths; 60 are the least that a bundle of this node has to hold", len(paths))
	}
	return paths
}
