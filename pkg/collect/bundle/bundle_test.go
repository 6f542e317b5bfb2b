package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// member is one entry of a test archive.
type member struct {
	name, content string
	typeflag      byte
}

func pack(t testing.TB, members ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o600, Size: int64(len(m.content)), Typeflag: tar.TypeReg}
		if m.typeflag != 0 {
			h.Typeflag, h.Size, h.Linkname = m.typeflag, 0, m.content
			m.content = ""
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, m.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// manifestOf is the manifest that tells the truth about the members.
func manifestOf(t testing.TB, change func(*Manifest), members ...member) member {
	t.Helper()
	m := Manifest{SchemaVersion: SchemaVersion, Node: "n"}
	for _, f := range members {
		sum := sha256.Sum256([]byte(f.content))
		m.Items = append(m.Items, Item{Path: f.name, Bytes: int64(len(f.content)), SHA256: hex.EncodeToString(sum[:]), Status: StatusOK})
	}
	m.Items = append(m.Items, Item{Path: "gpu/x", Status: StatusAbsent, Error: "no GPU"})
	if change != nil {
		change(&m)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return member{name: ManifestName, content: string(text)}
}

var twoFiles = []member{{name: "a.txt", content: "hello\n"}, {name: "system/b.txt", content: strings.Repeat("b\n", 5000)}}

func good(t testing.TB) []byte {
	return pack(t, append(twoFiles[:2:2], manifestOf(t, nil, twoFiles...))...)
}

func TestVerifyAcceptsAWholeBundle(t *testing.T) {
	rep, err := Verify(bytes.NewReader(good(t)))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Manifest == nil || rep.Manifest.Node != "n" || rep.Manifest.Count(StatusAbsent) != 1 || rep.Entries != 3 {
		t.Errorf("%+v", rep)
	}
}

func TestVerifyReadsABundleOfAnotherAgentThrough(t *testing.T) {
	b := pack(t, member{name: "dir/", typeflag: tar.TypeDir}, member{name: "dir/", typeflag: tar.TypeDir}, member{name: "./var_log/x", content: "x"}, member{name: "l", content: "x", typeflag: tar.TypeSymlink})
	rep, err := Verify(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if rep.Manifest != nil || rep.Entries != 1 || rep.Special != 1 || rep.Bytes != 1 {
		t.Errorf("%+v", rep)
	}
	if _, err := Verify(bytes.NewReader(b[:len(b)-10])); !errors.Is(err, ErrCorrupt) {
		t.Errorf("cut short: %v", err)
	}
}

func TestVerifyRefusesWhatIsNotAsTheManifestSays(t *testing.T) {
	for name, b := range map[string][]byte{
		"another content":      pack(t, member{name: "a.txt", content: "HELLO\n"}, twoFiles[1], manifestOf(t, nil, twoFiles...)),
		"a file is missing":    pack(t, twoFiles[0], manifestOf(t, nil, twoFiles...)),
		"a file is not listed": pack(t, append(twoFiles[:2:2], member{name: "c", content: "c"}, manifestOf(t, nil, twoFiles...))...),
		"twice":                pack(t, twoFiles[0], twoFiles[0], manifestOf(t, nil, twoFiles[0])),
		"twice, other words":   pack(t, twoFiles[0], member{name: "./a.txt", content: "hello\n"}),
		"folder and file":      pack(t, member{name: "a", content: "x"}, member{name: "a/", typeflag: tar.TypeDir}),
		"after the manifest":   pack(t, manifestOf(t, nil), twoFiles[0]),
		"no JSON":              pack(t, member{name: ManifestName, content: "{"}),
		"no version":           pack(t, manifestOf(t, func(m *Manifest) { m.SchemaVersion = 0 })),
		"a link":               pack(t, member{name: "l", content: "/etc/passwd", typeflag: tar.TypeSymlink}, manifestOf(t, nil)),
		"upwards":              pack(t, member{name: "../x", content: "x"}),
		"upwards, within":      pack(t, member{name: "a/../../x", content: "x"}),
		"absolute":             pack(t, member{name: "/etc/x", content: "x"}),
		"backslash":            pack(t, member{name: `..\x`, content: "x"}),
		"drive":                pack(t, member{name: "c:x", content: "x"}),
		"empty":                {},
		"HTML":                 []byte("<!doctype html><html></html>"),
		"trailing bytes":       append(good(t), "more"...),
	} {
		if rep, err := Verify(bytes.NewReader(b)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %+v, %v", name, rep, err)
		}
	}
}

func TestVerifyToldAFutureVersionSaysToUpdate(t *testing.T) {
	b := pack(t, manifestOf(t, func(m *Manifest) { m.SchemaVersion = SchemaVersion + 1 }))
	if _, err := Verify(bytes.NewReader(b)); err == nil || errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "newer") {
		t.Errorf("error %v", err)
	}
}

func TestVerifyNoticesEveryCutAndEveryFlippedByte(t *testing.T) {
	b := good(t)
	for n := range len(b) {
		if _, err := Verify(bytes.NewReader(b[:n])); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(b), err)
		}
	}
	// The first ten bytes are gzip's header: time, system and flags are not content.
	for i := 10; i < len(b); i++ {
		bad := bytes.Clone(b)
		bad[i] ^= 0x40
		if _, err := Verify(bytes.NewReader(bad)); err == nil && !bytes.Equal(unzip(bad), unzip(b)) {
			t.Fatalf("byte %d of %d flipped: not noticed", i, len(b))
		}
	}
}

// unzip returns what it can: a flipped bit need not change the content.
func unzip(b []byte) []byte {
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil
	}
	out, _ := io.ReadAll(zr)
	return out
}

type brokenReader struct {
	r   io.Reader
	err error
}

func (b *brokenReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func TestALostConnectionIsNotADamagedBundle(t *testing.T) {
	lost := errors.New("connection reset")
	b := good(t)
	for _, n := range []int{0, 5, 40, len(b) / 2, len(b) - 4} {
		_, err := Verify(&brokenReader{bytes.NewReader(b[:n]), lost})
		if !errors.Is(err, lost) || errors.Is(err, ErrCorrupt) {
			t.Errorf("after %d bytes: %v", n, err)
		}
	}
}

func TestExtractWritesTheFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	rep, err := Extract(bytes.NewReader(good(t)), dir, 0)
	if err != nil || rep.Manifest == nil {
		t.Fatal(rep, err)
	}
	for name, want := range map[string]string{"a.txt": "hello\n", "system/b.txt": twoFiles[1].content} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	if _, err := Extract(bytes.NewReader(good(t)), dir, 0); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("into what is there: %v", err)
	}
}

func TestExtractRefusesAndLeavesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		b     []byte
		limit int64
	}{
		"upwards":          {pack(t, member{name: "../evil", content: "x"}), 0},
		"absolute":         {pack(t, member{name: "/evil", content: "x"}), 0},
		"symbolic link":    {pack(t, member{name: "l", content: "..", typeflag: tar.TypeSymlink}, member{name: "l/evil", content: "x"}), 0},
		"hard link":        {pack(t, twoFiles[0], member{name: "h", content: "a.txt", typeflag: tar.TypeLink}), 0},
		"device":           {pack(t, member{name: "d", typeflag: tar.TypeChar}), 0},
		"FIFO":             {pack(t, member{name: "f", typeflag: tar.TypeFifo}), 0},
		"twice":            {pack(t, twoFiles[0], twoFiles[0]), 0},
		"file then folder": {pack(t, member{name: "a", content: "x"}, member{name: "a/b", content: "x"}), 0},
		"too large":        {good(t), 100},
		"corrupt":          {good(t)[:200], 0},
		"wrong hash":       {pack(t, member{name: "a.txt", content: "HELLO\n"}, twoFiles[1], manifestOf(t, nil, twoFiles...)), 0},
	} {
		parent := t.TempDir()
		if rep, err := Extract(bytes.NewReader(tc.b), filepath.Join(parent, "in", ""), tc.limit); err == nil {
			t.Errorf("%s: %+v", name, rep)
		}
		left, err := os.ReadDir(parent)
		if err != nil || len(left) != 0 {
			t.Errorf("%s: left behind: %v, %v", name, left, err)
		}
	}
}

func FuzzVerifyAndExtract(f *testing.F) {
	f.Add(good(f))
	f.Add(pack(f, member{name: "../x", content: "x"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		rep, err := Verify(bytes.NewReader(b))
		parent := t.TempDir()
		_, xerr := Extract(bytes.NewReader(b), filepath.Join(parent, "x"), 1<<20)
		if err != nil && xerr == nil {
			t.Errorf("extracted what does not verify: %v", err)
		}
		if err == nil && rep == nil {
			t.Error("neither report nor error")
		}
		entries, derr := os.ReadDir(parent)
		if derr != nil || len(entries) > 1 || len(entries) == 1 && entries[0].Name() != "x" {
			t.Errorf("outside of the folder: %v, %v", entries, derr)
		}
	})
}
