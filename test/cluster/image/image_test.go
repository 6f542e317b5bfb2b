package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLibrariesOfADynamicProgramAreThoseThatLddNames(t *testing.T) {
	out, err := exec.Command("ldd", "/bin/ls").Output()
	if err != nil {
		t.Skipf("ldd is needed to compare with: %v", err)
	}
	got, err := Libraries("/bin/ls")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range got {
		names = append(names, filepath.Base(path))
	}
	for line := range strings.Lines(string(out)) {
		name := filepath.Base(strings.Fields(line)[0])
		if strings.HasPrefix(name, "linux-vdso") {
			continue // the kernel's own, no file
		}
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing from %v", name, names)
		}
	}
}

func TestLibrariesOfAStaticProgramAreNone(t *testing.T) {
	got, err := Libraries(static(t))
	if err != nil || len(got) != 0 {
		t.Errorf("got %v, %v; want none", got, err)
	}
}

func TestLibrariesRefuseWhatIsNoProgram(t *testing.T) {
	if _, err := Libraries("/etc/passwd"); err == nil || !strings.Contains(err.Error(), "/etc/passwd") {
		t.Errorf("error %v, want one that names the file", err)
	}
}

func TestWriteMakesAnImageThatStartsTheProgram(t *testing.T) {
	binary := static(t)
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := Write(w, "registry.test/x:1", Spec{Binary: binary, Args: []string{"run"}}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two images of one program differ")
	}
	files := untar(t, &first)
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || manifest[0].RepoTags[0] != "registry.test/x:1" {
		t.Fatalf("manifest %+v", manifest)
	}
	var config struct {
		Config struct{ Entrypoint []string }
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal(files[manifest[0].Config], &config); err != nil {
		t.Fatal(err)
	}
	layer := files[manifest[0].Layers[0]]
	if got := config.RootFS.DiffIDs; len(got) != 1 || got[0] != digest(layer) {
		t.Errorf("diff ids %v, want the layer's digest %s", got, digest(layer))
	}
	if got, want := config.Config.Entrypoint, []string{"/" + filepath.Base(binary), "run"}; !slices.Equal(got, want) {
		t.Errorf("entrypoint %v, want %v", got, want)
	}
	want, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if got := untar(t, bytes.NewReader(layer))[filepath.Base(binary)]; !bytes.Equal(got, want) {
		t.Errorf("the layer's program has %d bytes, want the %d of the file", len(got), len(want))
	}
}

// static builds the smallest static program.
func static(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "nothing")
	cmd := exec.Command("go", "build", "-o", binary, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

func untar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(tr); err != nil {
			t.Fatal(err)
		}
	}
}
